//! The engine's optimisations, each of which can be left out: what it replaces is then done as in
//! the papers, so that a benchmark can say what each of them is worth.
//!
//! None of them changes an answer or a state, and they may differ from open to open.

/// Which optimisations an engine uses. The default is how the engine is meant to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Techniques {
    /// A hash of the whole state is kept up with every final write, lies on the medium with the
    /// checkpoint, and is compared at recovery. Without it checkpoints say that it is not known;
    /// an engine that is opened with it again computes it from the rows. Default on.
    pub state_hash: bool,
}

/// One of the switches of [`Techniques`].
#[derive(Debug, Clone, Copy)]
pub struct Technique {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// What it does, in a few words.
    pub what: &'static str,
    get: fn(&Techniques) -> bool,
    set: fn(&mut Techniques, bool),
}

/// Makes the entry of a field.
macro_rules! technique {
    ($field:ident, $name:literal, $what:literal) => {
        Technique {
            name: $name,
            what: $what,
            get: |techniques| techniques.$field,
            set: |techniques, on| techniques.$field = on,
        }
    };
}

impl Technique {
    /// All of them, in the order of the fields.
    pub const ALL: [Technique; 1] =
        [technique!(state_hash, "state-hash", "the running state hash")];

    /// The one with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|technique| technique.name == name)
    }

    /// Whether the engine uses it where nobody says otherwise.
    #[must_use]
    pub fn is_on_by_default(self) -> bool {
        self.is_on(&Techniques::default())
    }

    /// How an engine is run in which it is turned over: `with` it or `without`.
    #[must_use]
    pub fn turned(self) -> &'static str {
        if self.is_on_by_default() { "without" } else { "with" }
    }

    /// Whether it is used.
    #[must_use]
    pub fn is_on(self, techniques: &Techniques) -> bool {
        (self.get)(techniques)
    }
}

impl Default for Techniques {
    fn default() -> Self {
        Self { state_hash: true }
    }
}

impl Techniques {
    /// With one of them turned over.
    #[must_use]
    pub fn turned(mut self, technique: Technique) -> Self {
        let is_on = technique.is_on(&self);
        (technique.set)(&mut self, !is_on);
        self
    }

    /// Each of them turned over: as the papers describe their engines.
    #[must_use]
    pub fn as_the_papers() -> Self {
        Technique::ALL.into_iter().fold(Self::default(), Self::turned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_turns_one_switch_over_and_back() {
        let default = Techniques::default();
        let mut seen = vec![default];
        for technique in Technique::ALL {
            let turned = default.turned(technique);
            assert!(!seen.contains(&turned), "{} turns nothing of its own", technique.name);
            assert_eq!(turned.turned(technique), default);
            let named = Technique::named(technique.name).expect("its own name");
            assert_ne!(named.is_on(&turned), named.is_on_by_default());
            seen.push(turned);
        }
        assert!(Technique::named("append").is_none() && Technique::named("").is_none());
        let papers = Techniques::as_the_papers();
        assert!(!papers.state_hash);
    }
}
