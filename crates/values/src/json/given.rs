//! `json`: text as it was given, of which parts are parts of that text. What is here takes text
//! that was read as JSON before; other text gives no parts.

/// Where something is in the text.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

/// The value of the member with this key, of an object: the last one if there are several.
pub fn member<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let mut found = None;
    let mut walk = Walk::into(json, b'{')?;
    while let Some(name) = walk.value() {
        walk.sign(b':')?;
        let value = walk.value()?;
        if super::Json::parse(name).ok()? == super::Json::String(key.into()) {
            found = Some(value);
        }
        if walk.sign(b',').is_none() {
            break;
        }
    }
    found
}

/// The item at an index, of an array; below zero from its end.
pub fn item(json: &str, index: i64) -> Option<&str> {
    let items = items(json)?;
    let index = if index < 0 { index.checked_add(items.len() as i64)? } else { index };
    items.get(usize::try_from(index).ok()?).copied()
}

fn items(json: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    let mut walk = Walk::into(json, b'[')?;
    while let Some(value) = walk.value() {
        items.push(value);
        if walk.sign(b',').is_none() {
            break;
        }
    }
    Some(items)
}

impl<'a> Walk<'a> {
    /// Behind the bracket with which the text begins.
    fn into(text: &'a str, bracket: u8) -> Option<Walk<'a>> {
        let mut walk = Walk { text, at: 0 };
        walk.sign(bracket).map(|()| walk)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        self.blanks();
        (self.peek()? == sign).then(|| self.at += 1)
    }

    /// The next value; none at a closing bracket.
    fn value(&mut self) -> Option<&'a str> {
        self.blanks();
        let (begin, mut depth) = (self.at, 0_usize);
        loop {
            match self.peek() {
                Some(b'"') => self.string(),
                Some(b'[' | b'{') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b']' | b'}') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                None | Some(b',' | b':' | b']' | b'}') if depth == 0 => break,
                None => return None,
                Some(_) => self.at += 1,
            }
        }
        let value = self.text.get(begin..self.at)?.trim_ascii_end();
        (!value.is_empty()).then_some(value)
    }

    /// Goes behind a string.
    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_text_as_it_was_given() {
        let json = concat!(
            r#" { "a" : [1,  2.50] , "b\"":{"x":"],}"},"#,
            r#""a\u0062":null, "d" : 1 , "d":2}"#
        );
        assert_eq!(member(json, "a"), Some("[1,  2.50]"));
        assert_eq!(member(json, "b\""), Some("{\"x\":\"],}\"}"));
        assert_eq!(member(json, "ab"), Some("null"));
        assert_eq!(member(json, "d"), Some("2"));
        assert_eq!(member(json, "x"), None);
        assert_eq!(member("[1]", "x"), None);
        assert_eq!(member("{}", "x"), None);
        let list = "[ 1 ,\"a,b\", [2,3] ]";
        assert_eq!(item(list, 0), Some("1"));
        assert_eq!(item(list, 1), Some("\"a,b\""));
        assert_eq!(item(list, -1), Some("[2,3]"));
        assert_eq!(
            (item(list, 3), item(list, -4), item("[]", 0), item("7", 0)),
            Default::default()
        );
        // Text that is no JSON has no parts, and ends nothing.
        for text in ["{", "{\"a", "[1, [", "{\"a\":", "\"", "{\"\\"] {
            assert_eq!((member(text, "a"), item(text, 1)), (None, None), "{text}");
        }
    }
}
