//! Read-ahead: detects sequential page faults and predicts the next pages.
//!
//! 1. A window opens at the second fault in sequence and doubles with each further one, so that
//!    wrong predictions are at most about as many as right ones.
//! 2. A window whose pages were evicted before use is halved.
//! 3. Demand reads go before read-ahead (`queue.rs`).

use std::ops::Range;

/// Number of sequential streams tracked, by least recent use.
const STREAMS: usize = 16;

/// Pages of the first window and of the largest one.
const FIRST_PAGES: u64 = 3;
pub(super) const MOST_PAGES: u64 = 31;

/// A sequential stream of page faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Stream {
    /// The last window. A fault right after it confirms all of its pages.
    guess: Range<u64>,
}

/// Detector of sequential streams.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Most recently used first.
    streams: [Stream; STREAMS],
}

impl Ahead {
    /// Records a fault of `page`. Returns the pages to read ahead: at most `most`, right after it,
    /// possibly beyond the image. `is_there` tells whether a page is resident, since resident pages
    /// cause no faults.
    pub(super) fn touched(
        &mut self,
        page: u64,
        most: u64,
        is_there: impl Fn(u64) -> bool,
    ) -> Range<u64> {
        let goes_on = |stream: &Stream| {
            let Range { start, end } = stream.guess;
            // Resident pages after the window cause no faults, so a scan may skip them.
            let skipped = if start < end { MOST_PAGES } else { 0 };
            end > 0 && (start..=end + skipped).contains(&page) && (end..page).all(&is_there)
        };
        let found = self.streams.iter().position(goes_on);
        let guess = found.map_or(0..0, |at| self.streams[at].guess.clone());
        let len = guess.end - guess.start;
        let wanted = match found {
            None => 0,
            Some(_) if page < guess.end => len / 2,
            Some(_) => (len * 2).clamp(FIRST_PAGES, MOST_PAGES),
        };
        let next = page + 1..page + 1 + wanted.min(most);
        let at = found.unwrap_or(STREAMS - 1);
        self.streams[..=at].rotate_right(1);
        self.streams[0] = Stream { guess: next.clone() };
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of pages read ahead if no other page is resident.
    fn touched(ahead: &mut Ahead, page: u64) -> u64 {
        let next = ahead.touched(page, MOST_PAGES, |_| false);
        assert_eq!(next.start, page + 1, "the pages right behind it");
        next.end - next.start
    }

    /// Runs a sequential scan; returns its windows.
    fn scanned(ahead: &mut Ahead, from: &mut u64, touches: usize) -> Vec<u64> {
        let touch = |_| {
            let len = touched(ahead, *from);
            *from += len + 1;
            len
        };
        (0..touches).map(touch).collect()
    }

    #[test]
    fn a_scan_reads_more_and_more_ahead() {
        let (mut ahead, mut page) = (Ahead::default(), 100);
        assert_eq!(scanned(&mut ahead, &mut page, 7), [0, 3, 6, 12, 24, 31, 31]);
    }

    /// The first page of an image is a page like others.
    #[test]
    fn a_scan_may_begin_anywhere_and_no_touch_before_is_part_of_it() {
        for first in [0, 1, 2, 31, 1 << 40] {
            let mut page = first;
            assert_eq!(scanned(&mut Ahead::default(), &mut page, 3), [0, 3, 6], "{first}");
        }
    }

    #[test]
    fn touches_that_are_not_in_a_row_read_nothing_ahead() {
        let (mut ahead, mut random) = (Ahead::default(), 7_u64);
        for _ in 0..1_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            assert_eq!(touched(&mut ahead, random >> 20), 0);
        }
        // Nor do those that go backwards, or that leave pages out.
        let mut ahead = Ahead::default();
        assert!((0..100).rev().all(|page| touched(&mut ahead, page) == 0));
        let mut ahead = Ahead::default();
        assert!((0..100).all(|page| touched(&mut ahead, page * 2) == 0));
    }

    #[test]
    fn as_many_scans_as_there_are_streams_are_told_apart() {
        let mut ahead = Ahead::default();
        let mut pages: Vec<u64> = (0..STREAMS as u64).map(|scan| scan << 20).collect();
        for expected in [0, 3, 6, 12] {
            for page in &mut pages {
                assert_eq!(scanned(&mut ahead, page, 1), [expected]);
            }
        }
        // One more forgets the one that was touched longest ago, and no other.
        let mut more = 1 << 40;
        assert_eq!(scanned(&mut ahead, &mut more, 2), [0, 3]);
        assert_eq!(scanned(&mut ahead, &mut pages[1], 1), [24]);
        assert_eq!(scanned(&mut ahead, &mut pages[0], 1), [0]);
    }

    #[test]
    fn what_is_in_memory_behind_a_guess_does_not_end_a_scan() {
        let (mut ahead, mut page) = (Ahead::default(), 0);
        assert_eq!(scanned(&mut ahead, &mut page, 1), [0]);
        assert!(ahead.touched(2, MOST_PAGES, |_| true).is_empty(), "no scan has begun");
        page = 3;
        assert_eq!(scanned(&mut ahead, &mut page, 1), [3]);
        let is_there = |other| (page..page + 9).contains(&other);
        assert_eq!(ahead.touched(page + 9, MOST_PAGES, is_there), page + 10..page + 16);
        // A page that is not there and was not touched does.
        assert!(ahead.touched(page + 20, MOST_PAGES, |other| other != page + 17).is_empty());
    }

    #[test]
    fn guesses_that_went_before_they_were_touched_become_fewer() {
        let (mut ahead, mut page) = (Ahead::default(), 0);
        assert_eq!(scanned(&mut ahead, &mut page, 5).last(), Some(&24));
        // One of the pages that were read ahead is touched while it is absent.
        for (page, expected) in (page - 20..).zip([12, 6, 3, 1, 0]) {
            assert_eq!(touched(&mut ahead, page), expected);
        }
    }

    #[test]
    fn no_more_is_read_ahead_than_there_is_room_for() {
        let mut ahead = Ahead::default();
        for (page, most, expected) in [(0, 9, 0), (1, 2, 2), (4, 0, 0), (5, 9, 3), (9, 4, 4)] {
            let next = ahead.touched(page, most, |_| false);
            assert_eq!(next.end - next.start, expected, "{page}");
        }
    }
}
