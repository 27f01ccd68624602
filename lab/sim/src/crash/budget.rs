//! How much of each case of a campaign is explored: of a few cases much, of most of them a little.
//!
//! Some bugs need many images of one history, others one history in a hundred. So most seeds get a
//! small budget, and time for ten times as many remains. Half of these spend it on all choices at
//! few crash points, the first ones; the other half on few choices, over the whole history.

use super::explore::Options;
use crate::history::Random;

/// One of how many seeds is explored deeply.
const DEEP_ONE_IN: u64 = 32;
/// Most images of the others.
const IMAGES_OF_BROAD: u64 = 110;
/// One of how many images of the others is recovered again under record. A case with few images
/// comes as deep as one with many.
const BROAD_NEST_ONE_IN: u64 = 12;

/// Whether a seed's case is one of the deep ones.
#[must_use]
pub fn is_deep(seed: u64) -> bool {
    Random::new(seed ^ 0xdee9).below(DEEP_ONE_IN) == 0
}

impl Options<'_> {
    /// What is explored of the case of a seed, in a campaign with these options: all that they say
    /// if it is a deep case or if they are not [`Options::mixed`], otherwise less.
    #[must_use]
    pub fn for_seed(self, seed: u64) -> Self {
        if !self.mixed || is_deep(seed) || self.images_max <= IMAGES_OF_BROAD {
            return self;
        }
        let nest_one_in = self.nest_one_in.min(BROAD_NEST_ONE_IN);
        let spread = Random::new(seed ^ 0x5b1ead).percent(50);
        Self { images_max: IMAGES_OF_BROAD, nest_one_in, spread, ..self }
    }
}
