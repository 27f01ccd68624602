//! What types are called where they are described.

/// The name of a type without the modules that it is in.
pub(crate) fn short_name<T: ?Sized>() -> String {
    let mut short = String::new();
    for part in std::any::type_name::<T>().split_inclusive(['<', '>', '(', ')', ',', ';', '[', ' '])
    {
        short.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    short
}
