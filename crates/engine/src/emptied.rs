//! Lists that are used again in the next epoch.

/// A list keeps at most so many bytes for the next epoch: one that was larger made more work than
/// what its memory costs anew.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// Empties a list, and keeps its memory unless that is much.
pub(crate) fn empty<T>(list: &mut Vec<T>) {
    match list.capacity() * size_of::<T>() > KEPT_BYTES_MAX {
        true => *list = Vec::new(),
        false => list.clear(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_little() {
        let mut list = vec![1u64; 1000];
        empty(&mut list);
        assert!(list.is_empty() && list.capacity() >= 1000);
        list.resize(KEPT_BYTES_MAX / 8 + 1, 1);
        empty(&mut list);
        assert_eq!((list.len(), list.capacity()), (0, 0));
    }
}
