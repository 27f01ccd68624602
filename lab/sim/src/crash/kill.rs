//! Where a life is ended by a kill of its process, not by a power cut.
//!
//! All its stores stay visible, and the store is opened and lives on. But what was not durable is
//! still not, and a power cut may take it back at any later moment. Knows crash points and chance.

use std::collections::{BTreeSet, HashMap};

use super::points::{Class, Point};
use crate::history::Random;

/// Images that a kill and what follows from it cost, more or less.
pub(super) const IMAGES_OF_A_KILL: u64 = 60;

/// Choices of what arrived that are asked at a point of a life of which few points are explored:
/// the first is that nothing did that had not to, which takes back what a dead process left.
pub(super) const CHOICES_OF_FEW: usize = 3;

/// One of how many lives that follow a crash has a kill, too.
const LATER_LIFE_ONE_IN: u64 = 8;

/// The points at which, or behind which, the process is killed: `most` of them, each of another
/// class, as long as there are classes.
pub(super) fn kills(
    points: &[Point],
    most: u64,
    is_first: bool,
    random: &mut Random,
) -> BTreeSet<usize> {
    let mut kills = BTreeSet::new();
    if most == 0 || !is_first && random.below(LATER_LIFE_ONE_IN) > 0 {
        return kills;
    }
    let mut of_class: HashMap<Class, Vec<usize>> = HashMap::new();
    for (position, point) in points.iter().enumerate() {
        of_class.entry(point.class).or_default().push(position);
    }
    let mut classes: Vec<Class> =
        Class::ALL.into_iter().filter(|class| of_class.contains_key(class)).collect();
    for _ in 0..if is_first { most } else { 1 } {
        if classes.is_empty() {
            return kills;
        }
        let class = classes.swap_remove(random.below(classes.len() as u64) as usize);
        let positions = &of_class[&class];
        let position = positions[random.below(positions.len() as u64) as usize];
        kills.insert(if random.percent(50) {
            position
        } else {
            near_the_end(points, position, random)
        });
    }
    kills
}

/// A place close to where the class of a point ends: there most is stored that is not fenced.
fn near_the_end(points: &[Point], position: usize, random: &mut Random) -> usize {
    let class = points[position].class;
    let run = points[position..].iter().take_while(|point| point.class == class).count();
    position + (run - 1).saturating_sub(random.below(4) as usize)
}
