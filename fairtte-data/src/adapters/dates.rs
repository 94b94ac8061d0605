//! Dates of hospital tables in the proleptic Gregorian calendar (2100 and 2200 have no 29 February).

use jiff::civil::Date;

/// Days since 1 January 1970; differences between two are whole days.
pub(crate) fn day_number(date: Date) -> i32 {
    // Years from March on, so that the leap day is the last of its year; a general calendar library with
    // units and time zones is too slow for a million dates.
    let (year, month, day) = (i32::from(date.year()), i32::from(date.month()), i32::from(date.day()));
    let years = if month > 2 { year } else { year - 1 };
    let months = (month + 9) % 12;
    let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    // 719,469 days lie between 1 March of the year 0 and 1 January 1970, and the first day is number 1.
    years * 365 + leap_days + (months * 153 + 2) / 5 + day - 719_469
}

/// `2150-01-31` or `2150/01/31`, also followed by a time of day (after a space or `T`).
pub(crate) fn parse_date(text: &str) -> Option<Date> {
    let (date, rest) = text.split_at_checked(10)?;
    if !(rest.is_empty() || rest.starts_with([' ', 'T']) && parse_clock(rest[1..].trim_start()).is_some()) {
        return None;
    }
    let bytes = date.as_bytes();
    let separator = bytes[4];
    if bytes[7] != separator || !matches!(separator, b'-' | b'/') {
        return None;
    }
    civil(digits(&bytes[..4])?, digits(&bytes[5..7])?, digits(&bytes[8..])?)
}

/// `21500131`, also as other software rewrites a column of whole numbers: `21500131.0`; or what [`parse_date`] takes.
pub(crate) fn parse_compact_date(text: &str) -> Option<Date> {
    let whole = text.strip_suffix(".0").unwrap_or(text).as_bytes();
    if whole.len() != 8 {
        return parse_date(text);
    }
    civil(digits(&whole[..4])?, digits(&whole[4..6])?, digits(&whole[6..])?)
}

/// `1/31/2006` or `01/31/2006`, month first, as LONI writes it; or what [`parse_date`] takes.
pub(crate) fn parse_american_date(text: &str) -> Option<Date> {
    if text.find(['-', '/']) == Some(4) {
        return parse_date(text);
    }
    let mut parts = text.split('/');
    let (month, day, year) = (parts.next()?, parts.next()?, parts.next()?);
    let fits =
        parts.next().is_none() && year.len() == 4 && (1..=2).contains(&month.len()) && (1..=2).contains(&day.len());
    let number = |text: &str| digits(text.as_bytes());
    if fits { civil(number(year)?, number(month)?, number(day)?) } else { None }
}

/// Milliseconds since midnight of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fff`.
pub(crate) fn parse_clock(text: &str) -> Option<u32> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let mut parts = text.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next().unwrap_or("00"));
    if parts.next().is_some() || hour.len() != 2 || minute.len() != 2 {
        return None;
    }
    let (second, fraction) = second.split_once('.').unwrap_or((second, "0"));
    if second.len() != 2 {
        return None;
    }
    let number = |text: &str| digits(text.as_bytes());
    clock(number(hour)?, number(minute)?, number(second)?, fraction)
}

/// Milliseconds since midnight of the DICOM time `HHMMSS.fff` whose leading zeros were lost: `80556.875` is
/// 08:05:56.875.
pub(crate) fn parse_dicom_time(text: &str) -> Option<u32> {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    let number = (1..=6).contains(&whole.len()).then(|| digits(whole.as_bytes()))??;
    let fraction = text.get(whole.len() + 1..).unwrap_or("0");
    clock(number / 10_000, number / 100 % 100, number % 100, fraction)
}

/// Milliseconds since midnight; `fraction` is the part after the decimal point of the seconds.
fn clock(hour: u32, minute: u32, seconds: u32, fraction: &str) -> Option<u32> {
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // DICOM writes a leap second as 60.
    if hour > 23 || minute > 59 || seconds > 60 {
        return None;
    }
    let thousandths = fraction.bytes().chain(*b"000").take(3).fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    Some(((hour * 60 + minute) * 60 + seconds) * 1000 + thousandths)
}

fn civil(year: u32, month: u32, day: u32) -> Option<Date> {
    Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()
}

/// A number of at most nine digits, and nothing but digits.
fn digits(bytes: &[u8]) -> Option<u32> {
    let fits = !bytes.is_empty() && bytes.len() <= 9 && bytes.iter().all(u8::is_ascii_digit);
    fits.then(|| bytes.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn every_written_form_of_a_date_is_read() {
        let day = Some(date(2150, 1, 9));
        for text in ["2150-01-09", "2150/01/09", "2150-01-09 23:59:59", "2150-01-09T00:00:00.000", "2150-01-09 08:00"] {
            assert_eq!(parse_date(text), day, "{text}");
        }
        for text in ["21500109", "21500109.0", "2150-01-09"] {
            assert_eq!(parse_compact_date(text), day, "{text}");
        }
        for text in ["1/9/2150", "01/09/2150", "2150-01-09", "2150/01/09"] {
            assert_eq!(parse_american_date(text), day, "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_not_read() {
        for text in
            ["", "2150-02-29", "2100-02-29", "2200-02-29", "2150-13-01", "2150-1-9", "2150-01-09x", "2150-01/09"]
        {
            assert_eq!(parse_date(text), None, "{text}");
        }
        for text in ["2150011", "21500229", "2150010a", "215001091", "+2150109", "215001.9", "２１５０１"] {
            assert_eq!(parse_compact_date(text), None, "{text}");
        }
        for text in ["13/1/2006", "1/32/2006", "1/2/06", "1/2/2006/3", "1-2-2006", "/1/2006"] {
            assert_eq!(parse_american_date(text), None, "{text}");
        }
        assert_eq!(parse_date("2150-01-09 25:00:00"), None);
        assert!(parse_date("2096-02-29").is_some() && parse_date("2400-02-29").is_some());
    }

    #[test]
    fn centuries_that_400_does_not_divide_have_no_leap_day() {
        let days = |from: &str, to: &str| day_number(parse_date(to).unwrap()) - day_number(parse_date(from).unwrap());
        assert_eq!(days("2200-02-28", "2200-03-02"), 2);
        assert_eq!(days("2100-01-01", "2101-01-01"), 365);
        assert_eq!(days("2104-01-01", "2105-01-01"), 366);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let epoch = date(1970, 1, 1);
        assert_eq!(day_number(epoch), 0);
        for (year, n_days) in [(-1, 1200), (0, 400), (1899, 800), (1999, 800), (2096, 2000), (2199, 800), (9998, 700)] {
            let first = date(year, 1, 1);
            for n in 0..n_days {
                let day = first.checked_add(jiff::Span::new().days(n)).unwrap();
                assert_eq!(day_number(day), (day - epoch).get_days(), "{day}");
            }
        }
    }

    #[test]
    fn a_dicom_time_gets_its_leading_zeros_back() {
        let time =
            |hour: u32, minute: u32, second: u32, ms: u32| Some(((hour * 60 + minute) * 60 + second) * 1000 + ms);
        assert_eq!(parse_dicom_time("213014.531"), time(21, 30, 14, 531));
        assert_eq!(parse_dicom_time("80556.875"), time(8, 5, 56, 875));
        assert_eq!(parse_dicom_time("556.0"), time(0, 5, 56, 0));
        assert_eq!(parse_dicom_time("0.0"), time(0, 0, 0, 0));
        assert_eq!(parse_dicom_time("0"), time(0, 0, 0, 0));
        assert_eq!(parse_dicom_time("235959.999"), time(23, 59, 59, 999));
        for text in ["240000", "236000", "235961", "1e5", "-1", "", "1234567", "12.", ".5", "8:05"] {
            assert_eq!(parse_dicom_time(text), None, "{text}");
        }
    }
}
