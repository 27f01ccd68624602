//! Which lines of a value a part stands for, where a part has several.

use super::*;

#[test]
fn parts_stand_for_their_lines() {
    for part_lines in 1..=64 / SAME_PARTS {
        for parts in [0, 1, 0b1010, 0x8000, 0x8421, 0xffff] {
            let lines = lines_of_parts(parts, part_lines);
            for line in 0..64 {
                let part = line / part_lines;
                let expected = part < SAME_PARTS && parts >> part & 1 == 1;
                assert_eq!(lines >> line & 1 == 1, expected, "{parts:#x} of {part_lines}, {line}");
            }
            assert_eq!(whole_parts(lines, part_lines), parts);
            // A part that lacks one line is not whole.
            for line in (0..64).filter(|line| lines >> line & 1 == 1) {
                let expected = parts & !(1 << (line / part_lines));
                assert_eq!(whole_parts(lines & !(1 << line), part_lines), expected);
            }
        }
    }
}
