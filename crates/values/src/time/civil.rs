//! The calendar: Gregorian in both directions, with years counted through 0 (1 BC).

/// Days from 0000-03-01 to 2000-01-01.
const EPOCH_DAYS: i64 = 730_425;
/// Days of 400 years.
const CYCLE_DAYS: i64 = 146_097;

/// A day of the calendar. Year 0 is 1 BC, -1 is 2 BC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

impl Civil {
    /// The day, if the calendar has it.
    pub fn new(year: i64, month: u32, day: u32) -> Option<Civil> {
        let valid = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
        valid.then_some(Civil { year, month, day })
    }

    /// Days since 2000-01-01. Years count from March, so that a leap day is the last of its year.
    pub fn to_days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let cycle = year.div_euclid(400);
        let of_cycle = year.rem_euclid(400);
        let month = i64::from((self.month + 9) % 12);
        let of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        cycle * CYCLE_DAYS + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - EPOCH_DAYS
    }

    /// The day that is `days` after 2000-01-01.
    pub fn from_days(days: i64) -> Civil {
        let shifted = days + EPOCH_DAYS;
        let cycle = shifted.div_euclid(CYCLE_DAYS);
        let of_cycle = shifted.rem_euclid(CYCLE_DAYS);
        let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
        let of_year = of_cycle - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        assert!((1..=12).contains(&month) && (1..=31).contains(&day), "the calendar has the day");
        Civil {
            year: year + cycle * 400 + i64::from(month <= 2),
            month: month as u32,
            day: day as u32,
        }
    }

    /// The day `months` later; the last of the month if it has no such day.
    pub fn add_months(self, months: i64) -> Civil {
        let total = self.year * 12 + i64::from(self.month) - 1 + months;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
        Civil { year, month, day: self.day.min(days_in_month(year, month)) }
    }

    /// The year as it is shown, and whether it is before Christ.
    pub fn shown_year(self) -> (i64, bool) {
        if self.year > 0 { (self.year, false) } else { (1 - self.year, true) }
    }
}

fn days_in_month(year: i64, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_both_ways() {
        let day = |year, month, day| Civil::new(year, month, day).unwrap();
        assert_eq!(day(2000, 1, 1).to_days(), 0);
        assert_eq!(day(1970, 1, 1).to_days(), -10_957);
        assert_eq!(day(2000, 3, 1).to_days(), 60);
        assert_eq!(day(-4713, 11, 24).to_days(), -2_451_545);
        for days in (-3_000_000..3_000_000).step_by(997) {
            assert_eq!(Civil::from_days(days).to_days(), days);
        }
        assert_eq!(Civil::new(2023, 2, 29), None);
        assert_eq!(day(2024, 1, 31).add_months(1), day(2024, 2, 29));
        assert_eq!(day(2024, 3, 31).add_months(-13), day(2023, 2, 28));
    }
}
