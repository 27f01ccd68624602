//! Damage from outside never ends in a wrong state, nor in a loss that could have been told.

use sim::damage::{DamageKind, End, damage_campaign};
use sim::history::effort;

#[test]
fn o_54_a_damaged_store_is_refused_untouched_or_recovered() {
    let first = effort("NVCARACAL_FIRST_SEED", 1);
    let cases = effort("NVCARACAL_DAMAGES", 600);
    let (counts, violation) = damage_campaign(first, Some(cases), |_| true);
    if let Some(violation) = violation {
        panic!("damage, seed {}: {}", violation.seed, violation.what);
    }
    assert_eq!(counts.cases, cases);
    for kind in DamageKind::ALL {
        assert!(counts.count(kind, End::Refused) > 0, "{}", kind.name());
        // Nothing is left to recover from where a file is another store's or begins elsewhere,
        // except by luck.
        let is_lucky = matches!(kind, DamageKind::OtherStore | DamageKind::Shift);
        assert!(is_lucky || counts.count(kind, End::Recovered) > 0, "{}", kind.name());
    }
    let older: u64 = DamageKind::ALL.iter().map(|kind| counts.count(*kind, End::Older)).sum();
    assert!(older * 20 < cases, "{older} of {cases} lost something that nothing tells");
}
