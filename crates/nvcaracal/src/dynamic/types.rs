//! Types in words.

/// How the values of a type are written in a cell of a table of text, such as CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Texts are written as they are, everything else as JSON.
    pub is_text: bool,
    /// There is a value without a text: null.
    pub may_be_null: bool,
}

/// A type as far as its bytes depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Unit,
    Bool,
    Char,
    /// Of so many bytes.
    Unsigned(usize),
    Signed(usize),
    Float(usize),
    Text,
    Option(Box<Self>),
    Result(Box<Self>, Box<Self>),
    List(Box<Self>),
    Array(Box<Self>, usize),
    Map(Box<Self>, Box<Self>),
    Set(Box<Self>),
    Tuple(Vec<Self>),
    Duration,
    Time,
    Uuid,
    Decimal,
    /// Its name, as types inside it call it.
    Struct(String, Fields),
    Enum(String, Vec<(String, Fields)>),
    /// Of another crate: bytes with their length.
    Serde,
    /// So many bytes of which nothing is known.
    Opaque(usize),
    /// The type around that has this name.
    Outer(String),
}

/// Fields; those of tuples have no names.
pub(super) type Fields = Vec<(Option<String>, Type)>;

/// Types in types, at most.
const DEPTH_MAX: usize = 64;

impl Type {
    pub(super) fn parse(words: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: words, outer: Vec::new(), depth: 0 };
        let parsed = parser.one().filter(|_| parser.rest.is_empty());
        let at = words.len() - parser.rest.len();
        parsed.ok_or_else(|| format!("{words:?} is no type: see column {}", at + 1))
    }

    /// What values of it are called.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Unit => "null",
            Self::Bool => "true or false",
            Self::Char => "character, a text",
            Self::Text => "text",
            Self::Array(..) | Self::List(_) | Self::Set(_) | Self::Tuple(_) => {
                "list of the right length"
            }
            Self::Duration => "duration, as \"1.5s\"",
            Self::Time => "time, as \"2023-11-14T22:13:20Z\"",
            Self::Uuid => "uuid, a text",
            Self::Decimal => "decimal, as \"-1.50\"",
            _ => "object",
        }
    }

    /// How values of it are written in a cell.
    pub(super) fn cell(&self) -> Cell {
        match self {
            Self::Text | Self::Char | Self::Duration | Self::Time | Self::Uuid | Self::Decimal => {
                Cell { is_text: true, may_be_null: false }
            }
            Self::Option(inner) => Cell { may_be_null: true, ..inner.cell() },
            Self::Unit => Cell { is_text: false, may_be_null: true },
            _ => Cell { is_text: false, may_be_null: false },
        }
    }

    /// Whether types inside call it by this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        matches!(self, Self::Struct(of, _) | Self::Enum(of, _) if of == name)
    }

    /// Whether this is the type of a byte.
    pub(super) fn is_byte(&self) -> bool {
        *self == Self::Unsigned(1)
    }
}

struct Parser<'w> {
    rest: &'w str,
    /// Names of the structs and enums around.
    outer: Vec<&'w str>,
    depth: usize,
}

impl<'w> Parser<'w> {
    fn one(&mut self) -> Option<Type> {
        self.depth += 1;
        let parsed = (self.depth <= DEPTH_MAX).then(|| self.any()).flatten();
        self.depth -= 1;
        parsed
    }

    fn any(&mut self) -> Option<Type> {
        if self.skip("()") {
            return Some(Type::Unit);
        }
        if self.skip("(") {
            let parts = self.list(Self::one, ")")?;
            return Some(Type::Tuple(parts));
        }
        if self.skip("[") {
            let item = Box::new(self.one()?);
            if self.skip("]") {
                return Some(Type::List(item));
            }
            self.expect("; ")?;
            let count = self.number()?;
            self.expect("]")?;
            return Some(Type::Array(item, count));
        }
        if self.skip("enum ") {
            return self.variants();
        }
        if self.skip("serde ") {
            self.name()?;
            self.generics()?;
            return Some(Type::Serde);
        }
        let name = self.name()?;
        self.named(name)
    }

    fn named(&mut self, name: &'w str) -> Option<Type> {
        let boxed = |parser: &mut Self| parser.one().map(Box::new);
        Some(match name {
            "bool" => Type::Bool,
            "char" => Type::Char,
            "u8" | "u16" | "u32" | "u64" | "u128" => Type::Unsigned(bytes_of(name)?),
            "i8" | "i16" | "i32" | "i64" | "i128" => Type::Signed(bytes_of(name)?),
            "f32" | "f64" => Type::Float(bytes_of(name)?),
            "String" | "str" => Type::Text,
            "Duration" => Type::Duration,
            "SystemTime" => Type::Time,
            "Uuid" => Type::Uuid,
            "Decimal" => Type::Decimal,
            "Option" => self.within(|parser| Some(Type::Option(boxed(parser)?)))?,
            "Vec" => self.within(|parser| Some(Type::List(boxed(parser)?)))?,
            "BTreeSet" => self.within(|parser| Some(Type::Set(boxed(parser)?)))?,
            "Result" => self.within(|parser| {
                let ok = boxed(parser)?;
                parser.expect(", ")?;
                Some(Type::Result(ok, boxed(parser)?))
            })?,
            "BTreeMap" => self.within(|parser| {
                let key = boxed(parser)?;
                parser.expect(", ")?;
                Some(Type::Map(key, boxed(parser)?))
            })?,
            _ => return self.other(name),
        })
    }

    /// A struct, bytes, or one of the types around.
    fn other(&mut self, name: &'w str) -> Option<Type> {
        self.generics()?;
        if self.skip(" {  }") {
            return Some(Type::Struct(name.to_string(), Vec::new()));
        }
        if self.skip(" { ") {
            self.outer.push(name);
            let fields = self.list(Self::field, " }");
            self.outer.pop();
            return fields.map(|fields| Type::Struct(name.to_string(), fields));
        }
        if self.skip(" of ") {
            let bytes = self.number()?;
            return self.expect(" bytes").map(|()| Type::Opaque(bytes));
        }
        self.outer.contains(&name).then(|| Type::Outer(name.to_string()))
    }

    fn variants(&mut self) -> Option<Type> {
        let name = self.name()?;
        self.generics()?;
        self.expect(" { ")?;
        self.outer.push(name);
        let variants = self.list(
            |parser| {
                let name = parser.name()?.to_string();
                let fields = match parser.skip("(") {
                    true => parser.list(Self::field, ")")?,
                    false => Vec::new(),
                };
                Some((name, fields))
            },
            " }",
        );
        self.outer.pop();
        variants.map(|variants| Type::Enum(name.to_string(), variants))
    }

    /// `name: type` or a type.
    fn field(&mut self) -> Option<(Option<String>, Type)> {
        let before = self.rest;
        if let Some(name) = self.name()
            && self.skip(": ")
        {
            return Some((Some(name.to_string()), self.one()?));
        }
        self.rest = before;
        Some((None, self.one()?))
    }

    /// Something in angle brackets.
    fn within(&mut self, inside: impl FnOnce(&mut Self) -> Option<Type>) -> Option<Type> {
        self.expect("<")?;
        let inside = inside(self)?;
        self.expect(">")?;
        Some(inside)
    }

    /// Skips the arguments of a generic type: what it consists of follows.
    fn generics(&mut self) -> Option<()> {
        if !self.rest.starts_with('<') {
            return Some(());
        }
        let mut depth = 0_usize;
        for (at, c) in self.rest.char_indices() {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return Some(());
            }
        }
        None
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>, end: &str) -> Option<Vec<T>> {
        let mut all = vec![one(self)?];
        while !self.skip(end) {
            self.expect(", ")?;
            all.push(one(self)?);
        }
        Some(all)
    }

    fn name(&mut self) -> Option<&'w str> {
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '#';
        let end = self.rest.find(|c| !is_of_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    fn number(&mut self) -> Option<usize> {
        self.name()?.parse().ok()
    }

    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.skip(text).then_some(())
    }
}

/// Bytes of a number by its name, such as `u32`.
fn bytes_of(name: &str) -> Option<usize> {
    name[1..].parse::<usize>().ok().map(|bits| bits / 8)
}
