//! The options of COPY.

use crate::bind::{name_of, unsupported};
use sqlparser::ast::{CopyLegacyCsvOption, CopyLegacyOption, CopyOption, Ident};
use values::{Error, Result, SqlState};

/// How fields stand in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Tabs, and backslashes for what is no plain text.
    Text,
    /// Commas and quotes.
    Csv,
    /// No lines: values as in binary answers.
    Binary,
}

/// How rows are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Text, CSV or binary.
    pub style: Style,
    /// Between fields.
    pub delimiter: u8,
    /// The field that is NULL.
    pub null: String,
    /// Whether the first line has the names of the columns.
    pub header: bool,
    /// Around fields of CSV.
    pub quote: u8,
    /// Before a quote within quotes.
    pub escape: u8,
    /// For each column, whether it is always quoted.
    pub force_quote: Vec<bool>,
    /// For each column, whether a field without quotes is never NULL.
    pub force_not_null: Vec<bool>,
    /// For each column, whether a field in quotes may be NULL, too.
    pub force_null: Vec<bool>,
}

/// What a statement states, before what goes without saying is added.
#[derive(Default)]
struct Stated {
    style: Option<Style>,
    delimiter: Option<char>,
    null: Option<String>,
    header: Option<bool>,
    quote: Option<char>,
    escape: Option<char>,
    force_quote: Vec<Ident>,
    force_not_null: Vec<Ident>,
    force_null: Vec<Ident>,
}

fn wrong(message: &str) -> Error {
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn invalid(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, message)
}

/// Sets an option that may be stated once.
fn once<T>(slot: &mut Option<T>, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")),
    }
}

impl Stated {
    fn option(&mut self, option: &CopyOption) -> Result<()> {
        match option {
            CopyOption::Format(name) => match name_of(name).as_str() {
                "text" => once(&mut self.style, Style::Text),
                "csv" => once(&mut self.style, Style::Csv),
                "binary" => once(&mut self.style, Style::Binary),
                other => Err(invalid(&format!("COPY format \"{other}\" not recognized"))),
            },
            // Rows are there for all at once, as everything is.
            CopyOption::Freeze(_) => Ok(()),
            CopyOption::Delimiter(char) => once(&mut self.delimiter, *char),
            CopyOption::Null(text) => once(&mut self.null, text.clone()),
            CopyOption::Header(header) => once(&mut self.header, *header),
            CopyOption::Quote(char) => once(&mut self.quote, *char),
            CopyOption::Escape(char) => once(&mut self.escape, *char),
            CopyOption::ForceQuote(names) => {
                self.force_quote.clone_from(names);
                Ok(())
            }
            CopyOption::ForceNotNull(names) => {
                self.force_not_null.clone_from(names);
                Ok(())
            }
            CopyOption::ForceNull(names) => {
                self.force_null.clone_from(names);
                Ok(())
            }
            CopyOption::Encoding(name) => match name.to_ascii_lowercase().as_str() {
                "utf8" | "utf-8" | "unicode" => Ok(()),
                _ => Err(unsupported(&format!("encoding \"{name}\""))),
            },
        }
    }

    fn legacy(&mut self, option: &CopyLegacyOption) -> Result<()> {
        match option {
            CopyLegacyOption::Binary => once(&mut self.style, Style::Binary),
            CopyLegacyOption::Delimiter(char) => once(&mut self.delimiter, *char),
            CopyLegacyOption::Null(text) => once(&mut self.null, text.clone()),
            CopyLegacyOption::Header => once(&mut self.header, true),
            CopyLegacyOption::Csv(options) => {
                once(&mut self.style, Style::Csv)?;
                options.iter().try_for_each(|option| self.legacy_csv(option))
            }
            other => Err(unsupported(&format!("option {other} of COPY"))),
        }
    }

    fn legacy_csv(&mut self, option: &CopyLegacyCsvOption) -> Result<()> {
        self.option(&match option {
            CopyLegacyCsvOption::Header => CopyOption::Header(true),
            CopyLegacyCsvOption::Quote(char) => CopyOption::Quote(*char),
            CopyLegacyCsvOption::Escape(char) => CopyOption::Escape(*char),
            CopyLegacyCsvOption::ForceQuote(names) => CopyOption::ForceQuote(names.clone()),
            CopyLegacyCsvOption::ForceNotNull(names) => CopyOption::ForceNotNull(names.clone()),
        })
    }

    /// Refuses what is about lines.
    fn check_binary(&self) -> Result<()> {
        let refused = |what: &str| {
            let message = format!("cannot specify {what} in BINARY mode");
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        };
        match self {
            Stated { delimiter: Some(_), .. } => refused("DELIMITER"),
            Stated { null: Some(_), .. } => refused("NULL"),
            Stated { header: Some(true), .. } => Err(wrong("cannot specify HEADER in BINARY mode")),
            _ => Ok(()),
        }
    }

    /// Refuses what no line could be read with.
    fn check(&self, is_csv: bool) -> Result<()> {
        let chars = [self.delimiter, self.quote, self.escape];
        if chars.into_iter().flatten().any(|char| !char.is_ascii() || char == '\0') {
            return Err(wrong(
                "COPY delimiter, quote and escape must be single one-byte characters",
            ));
        }
        let ends_line = |text: &str| text.contains(['\n', '\r']);
        if self.delimiter.is_some_and(|char| "\n\r".contains(char)) {
            return Err(invalid("COPY delimiter cannot be newline or carriage return"));
        }
        if self.null.as_deref().is_some_and(ends_line) {
            return Err(invalid("COPY null representation cannot use newline or carriage return"));
        }
        let letters = "\\.abcdefghijklmnopqrstuvwxyz0123456789";
        if !is_csv && let Some(char) = self.delimiter.filter(|char| letters.contains(*char)) {
            return Err(invalid(&format!("COPY delimiter cannot be \"{char}\"")));
        }
        if !is_csv && self.quote.is_some() {
            return Err(wrong("COPY quote available only in CSV mode"));
        }
        if !is_csv && self.escape.is_some() {
            return Err(wrong("COPY escape available only in CSV mode"));
        }
        let forced = [&self.force_quote, &self.force_not_null, &self.force_null];
        if !is_csv && forced.iter().any(|names| !names.is_empty()) {
            return Err(wrong("COPY force quote and force null available only in CSV mode"));
        }
        let quote = self.quote.unwrap_or('"');
        if is_csv && self.delimiter.unwrap_or(',') == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        let null = self.null.as_deref().unwrap_or(if is_csv { "" } else { "\\N" });
        if null.contains(self.delimiter.unwrap_or(if is_csv { ',' } else { '\t' })) {
            return Err(invalid(
                "COPY delimiter character must not appear in the NULL specification",
            ));
        }
        if is_csv && null.contains(quote) {
            return Err(invalid("CSV quote character must not appear in the NULL specification"));
        }
        Ok(())
    }
}

impl Form {
    /// The form that a statement's options say, for columns of these names.
    pub(crate) fn of(
        options: &[CopyOption],
        legacy: &[CopyLegacyOption],
        columns: &[String],
    ) -> Result<Form> {
        let mut stated = Stated::default();
        options.iter().try_for_each(|option| stated.option(option))?;
        legacy.iter().try_for_each(|option| stated.legacy(option))?;
        let style = stated.style.unwrap_or(Style::Text);
        let is_csv = style == Style::Csv;
        if style == Style::Binary {
            stated.check_binary()?;
        }
        stated.check(is_csv)?;
        let byte = |char: char| char as u8;
        let quote = byte(stated.quote.unwrap_or('"'));
        Ok(Form {
            style,
            delimiter: byte(stated.delimiter.unwrap_or(if is_csv { ',' } else { '\t' })),
            null: stated.null.unwrap_or_else(|| if is_csv { "" } else { "\\N" }.to_owned()),
            header: stated.header.unwrap_or(false),
            quote,
            escape: stated.escape.map_or(quote, byte),
            force_quote: forced(&stated.force_quote, columns)?,
            force_not_null: forced(&stated.force_not_null, columns)?,
            force_null: forced(&stated.force_null, columns)?,
        })
    }
}

/// For each column, whether it is named.
fn forced(names: &[Ident], columns: &[String]) -> Result<Vec<bool>> {
    let mut forced = vec![false; columns.len()];
    for name in names {
        let name = name_of(name);
        let at = columns.iter().position(|column| *column == name).ok_or_else(|| {
            let message = format!("column \"{name}\" is not copied");
            Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
        })?;
        forced[at] = true;
    }
    Ok(forced)
}
