//! Times, uuids and decimals as texts, and back.

/// Seconds with as many digits as there are.
pub(super) fn seconds_text(seconds: i128, nanos: u32) -> String {
    match nanos {
        0 => seconds.to_string(),
        _ => format!("{seconds}.{:09}", nanos).trim_end_matches('0').to_string(),
    }
}

/// A time as RFC 3339 has it, in UTC (Hinnant's days and civil dates).
pub(super) fn date_text(seconds: i64, nanos: u32) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = i128::from(days) + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    let (hour, minute) = (rest / 3600, rest / 60 % 60);
    let second = seconds_text(i128::from(rest % 60), nanos);
    let zero = if rest % 60 < 10 { "0" } else { "" };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{zero}{second}Z")
}

pub(super) fn uuid_text(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let [a, b, c, d, e] = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    format!("{a}-{b}-{c}-{d}-{e}")
}

/// A decimal in the form of `rust_decimal`: flags with scale and sign, then 96 bits.
pub(super) fn decimal_text(bytes: &[u8]) -> Option<String> {
    let word = |at: usize| bytes[at..at + 4].try_into().map(u32::from_le_bytes).ok();
    let (flags, low, middle, high) = (word(0)?, word(4)?, word(8)?, word(12)?);
    let number = u128::from(high) << 64 | u128::from(middle) << 32 | u128::from(low);
    let scale = (flags >> 16 & 0xff) as usize;
    let digits = format!("{number:0width$}", width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if flags >> 31 == 1 { "-" } else { "" };
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") })
}

const NANOS: u32 = 1_000_000_000;

/// Digits behind the point as nanoseconds.
fn parse_nanos(digits: &str) -> Option<u32> {
    let is_fit = (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    is_fit.then(|| format!("{digits:0<9}").parse().ok()).flatten()
}

/// Seconds and nanoseconds of what [`seconds_text`] wrote.
fn parse_seconds(text: &str) -> Option<(u64, u32)> {
    match text.split_once('.') {
        None => Some((text.parse().ok()?, 0)),
        Some((seconds, digits)) => Some((seconds.parse().ok()?, parse_nanos(digits)?)),
    }
}

pub(super) fn parse_duration(text: &str) -> Option<(u64, u32)> {
    parse_seconds(text.strip_suffix('s')?).filter(|(_, nanos)| *nanos < NANOS)
}

/// Seconds since 1970 and nanoseconds of what [`date_text`] wrote.
pub(super) fn parse_date(text: &str) -> Option<(i64, u32)> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut parts = date.rsplitn(3, '-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let (day, month, year): (i128, i128, i128) =
        (day.parse().ok()?, month.parse().ok()?, year.parse().ok()?);
    let mut parts = time.splitn(3, ':');
    let (hour, minute): (i128, i128) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let (second, nanos) = parse_seconds(parts.next()?)?;
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + i128::from(second);
    let seconds = i64::try_from(seconds).ok()?;
    // Nothing that is no date, such as a 30th of February.
    (date_text(seconds, nanos) == text).then_some((seconds, nanos))
}

pub(super) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits = text.replace('-', "");
    let number = u128::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    (uuid_text(&number) == text).then_some(number)
}

/// The bytes of `rust_decimal` for what [`decimal_text`] wrote.
pub(super) fn parse_decimal(text: &str) -> Option<[u8; 16]> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let scale = digits.split_once('.').map_or(0, |(_, part)| part.len());
    let number: u128 = digits.replace('.', "").parse().ok()?;
    if number >> 96 != 0 || scale > 28 {
        return None;
    }
    let sign = if digits.len() < text.len() { 1 << 31 } else { 0 };
    let flags = sign | (scale as u32) << 16;
    let bytes: Vec<u8> = [flags, number as u32, (number >> 32) as u32, (number >> 64) as u32]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    (decimal_text(&bytes).as_deref() == Some(text)).then_some(bytes)
}
