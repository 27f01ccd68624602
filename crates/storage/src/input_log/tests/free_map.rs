//! Which segments are free, by itself.

use crate::input_log::space::FreeMap;

/// Segments that come when the log grows are found, wherever in a word they begin.
#[test]
fn a_full_map_that_grows_hands_out_what_it_grew_by() {
    for total in [1, 63, 64, 65, 100, 128, 200] {
        for more in [1, 63, 64, 65, 300] {
            let mut map = FreeMap::default();
            map.grow(total);
            let run = map.take_run(u32::MAX).expect("all are free");
            assert_eq!((run.first, run.len), (0, total));
            assert!(map.take_run(1).is_none(), "none of {total} is left");
            map.grow(total + more);
            let run = map.take_run(u32::MAX).expect("those that came are free");
            assert_eq!((run.first, run.len), (total, more), "{total} and {more}");
            assert!(map.take_run(1).is_none());
            map.insert(total / 2);
            let run = map.take_run(u32::MAX).expect("one was freed");
            assert_eq!((run.first, run.len), (total / 2, 1));
        }
    }
}

/// A log that becomes shorter and grows again has each segment once.
#[test]
fn a_map_that_shrinks_hands_out_what_is_left() {
    for total in [1, 63, 64, 65, 200] {
        for used in [0, 1, 63, 64, 65, 199] {
            if used >= total {
                continue;
            }
            let mut map = FreeMap::default();
            map.grow(total);
            assert_eq!(map.end_of_use(), 0);
            for segment in 0..used {
                map.remove(segment);
            }
            assert_eq!(map.end_of_use(), used, "of {total}");
            for end in [used, (used + total) / 2] {
                map.shrink(end);
                map.grow(total);
                let run = map.take_run(u32::MAX).expect("there are free ones");
                assert_eq!((run.first, run.len), (used, total - used), "{end} of {total}");
                assert!(map.take_run(1).is_none());
                (used..total).for_each(|segment| map.insert(segment));
            }
        }
    }
}
