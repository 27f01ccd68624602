//! Rules judge as they say.

use serde_json::json;

use super::super::data::Outcome;
use super::super::html::render;
use super::super::scale::Scale;
use super::super::verdict::{Judged, Verdict};
use super::{canned, found_by, plan_of, report_of};

/// The first statement of a figure that begins so, judged on throughputs by workload and series.
fn judged(
    figure: &str,
    says: &str,
    scale: Scale,
    throughput: impl Fn(&str, &str) -> Option<f64>,
) -> Judged {
    let plan = plan_of(&[figure], scale, 1);
    let found = found_by(&plan, |run| {
        let of = &run.uses[0];
        throughput(&of.workload, &of.series).map(|number| Outcome::Report(canned(number)))
    });
    let statements = report_of(&plan, &found).statements;
    statements.into_iter().find(|judged| judged.says.starts_with(says)).expect("a statement")
}

#[test]
fn a_statement_holds_within_its_range_holds_weakly_around_it_and_not_elsewhere() {
    let says = "YCSB, high contention: NVCaracal compared with all-NVMM";
    for (throughput, verdict, text) in [
        (2.9, Verdict::Holds, "2.90 times"),
        (3.2, Verdict::HoldsByMore, "3.20 times"),
        (1.5, Verdict::HoldsMoreWeakly, "1.50 times"),
        (0.9, Verdict::DoesNotHold, "0.90 times"),
    ] {
        let found = judged("fig7", says, Scale::Small, |_, series| {
            Some(if series == "NVCaracal" { throughput } else { 1.0 })
        });
        assert_eq!((found.verdict, found.ours[0].text.as_str()), (verdict, text));
        let is_as_said = matches!(verdict, Verdict::Holds | Verdict::HoldsByMore);
        assert_eq!(found.reason.is_none(), is_as_said, "{found:?}");
    }
}

#[test]
fn the_reason_is_chosen_by_what_came_out() {
    let says = "32 cores, uniform contention: bin packing";
    for (throughput, verdict, words) in [
        (1.0, Verdict::Holds, None),
        (1.3, Verdict::DoesNotHold, Some("Whole rows keep their lines")),
        (0.8, Verdict::DoesNotHold, Some("The model has one cache line")),
    ] {
        let found = judged("ca8", says, Scale::Small, |_, series| {
            Some(if series.starts_with("bin packing") { throughput } else { 1.0 })
        });
        assert_eq!(found.verdict, verdict, "{found:?}");
        let reason = found.reason.as_deref();
        assert!(
            words.is_none_or(|words| reason.is_some_and(|r| r.starts_with(words))),
            "{found:?}"
        );
    }
}

#[test]
fn most_of_several_numbers_within_the_range_are_a_weak_hold_and_few_are_none() {
    let says = "NVCaracal is faster under higher contention in all workloads";
    for (slow, verdict) in [
        (&[][..], Verdict::Holds),
        (&["tpcc-high"], Verdict::HoldsMoreWeakly),
        (&["tpcc-high", "smallbank-high"], Verdict::DoesNotHold),
    ] {
        let found = judged("fig7", says, Scale::Small, |workload, _| {
            let is_fast = workload.ends_with("-high") && !slow.contains(&workload);
            Some(if is_fast {
                2.0
            } else if slow.contains(&workload) {
                0.5
            } else {
                1.0
            })
        });
        assert_eq!(found.verdict, verdict, "{found:?}");
        assert_eq!(found.ours.len(), 4);
    }
}

#[test]
fn means_and_extremes_are_of_all_workloads() {
    let says = "YCSB: what the large data set costs NVCaracal, on average";
    let found = judged("fig5", says, Scale::Small, |workload, _| {
        Some(match workload {
            "ycsb-large-low" => 88.0,
            "ycsb-large-high" => 106.0,
            _ => 100.0,
        })
    });
    assert_eq!((found.verdict, found.ours.len()), (Verdict::Holds, 1));
    assert_eq!(found.ours[0].text, "-2.0 %");
    let says = "Cached versions, YCSB-smallrow: slower with them by, at worst";
    let found = judged("fig9", says, Scale::Small, |workload, series| {
        let with = series == "NVCaracal" && workload == "ycsb-smallrow-low";
        Some(if with { 95.0 } else { 100.0 })
    });
    assert_eq!((found.verdict, found.ours[0].text.as_str()), (Verdict::Holds, "-5.0 %"));
}

/// The verdict on a figure's statement, of three rounds in which one series has these throughputs
/// on one workload and 1.3 on the others, and all other series 1.
fn judged_in_rounds(
    figure: &str,
    says: &str,
    (series, workload): (&str, &str),
    rounds: [f64; 3],
) -> Judged {
    let plan = plan_of(&[figure], Scale::Small, 3);
    let found = found_by(&plan, |run| {
        let of = &run.uses[0];
        let own = if of.workload == workload { rounds[run.round as usize] } else { 1.3 };
        Some(Outcome::Report(canned(if of.series == series { own } else { 1.0 })))
    });
    let statements = report_of(&plan, &found).statements;
    statements.into_iter().find(|judged| judged.says.starts_with(says)).expect("it")
}

#[test]
fn there_is_no_verdict_on_a_time_whose_rounds_range_over_more_than_its_margin() {
    let says = "High contention: NVCaracal is faster than hybrid in all workloads";
    let of = ("NVCaracal", "smallbank-high");
    for (rounds, verdict) in [
        ([1.2, 1.3, 1.3], Verdict::Holds),
        ([1.2, 1.3, 1.45], Verdict::Holds),
        // It is 0.3 away from where it would hold no more, and depends on the last round.
        ([0.95, 0.99, 1.3], Verdict::RoundsDiffer),
        ([0.95, 1.01, 1.3], Verdict::Holds),
        ([0.94, 0.97, 0.99], Verdict::RoundsDiffer),
        ([0.955, 0.96, 0.965], Verdict::HoldsMoreWeakly),
        ([0.5, 0.6, 0.7], Verdict::HoldsMoreWeakly),
        ([0.4, 0.6, 0.8], Verdict::RoundsDiffer),
    ] {
        let judged = judged_in_rounds("fig7", says, of, rounds);
        assert_eq!(judged.verdict, verdict, "{rounds:?} {judged:?}");
        let reason = judged.reason.as_deref().unwrap_or_default();
        let tells = reason.contains("more than the margin of the verdict: SmallBank, high.");
        assert_eq!(tells, verdict == Verdict::RoundsDiffer, "{reason}");
    }
}

#[test]
fn costs_are_judged_by_their_best_rounds_and_shown_beside_the_clock() {
    let says = "YCSB, high contention: NVCaracal compared with all-NVMM";
    let plan = plan_of(&["fig7"], Scale::Small, 3);
    for (rounds, verdict, text) in [
        // One disturbed round says nothing.
        ([3.0, 0.5, 2.99], Verdict::Holds, "3.00 times (2.99 to 3.00)"),
        // Only one round says it.
        ([3.0, 0.5, 0.5], Verdict::RoundsDiffer, "3.00 times (0.50 to 3.00)"),
        ([1.5, 0.5, 1.49], Verdict::HoldsMoreWeakly, "1.50 times (1.49 to 1.50)"),
    ] {
        let found = found_by(&plan, |run| {
            let own = run.uses[0].series == "NVCaracal";
            let mut report = canned(if own { rounds[run.round as usize] } else { 1.0 });
            report["throughput_txn_per_s"] = json!(if own { 7.0 } else { 2.0 });
            Some(Outcome::Report(report))
        });
        let report = report_of(&plan, &found);
        let judged = report.statements.iter().find(|judged| judged.says == says).expect("it");
        assert_eq!((judged.verdict, judged.ours[0].text.as_str()), (verdict, text));
        assert_eq!(judged.by_clock[0].text, "3.50 times");
        let page = render(&report);
        assert!(page.contains("by the clock: ") && page.contains("processor time of all threads"));
    }
}

#[test]
fn counts_in_range_hold_only_more_weakly_if_a_round_shows_something_else() {
    let plan = plan_of(&["fig7"], Scale::Small, 3);
    let says = "YCSB and SmallBank, low contention: transient";
    for (transient, verdict) in [(30, Verdict::Holds), (400, Verdict::HoldsMoreWeakly)] {
        let found = found_by(&plan, |run| {
            let mut report = canned(1.0);
            if run.uses[0].workload == "smallbank-low" && run.round == 0 {
                report["counters"]["transient_versions"] = json!(transient);
            }
            Some(Outcome::Report(report))
        });
        let statements = report_of(&plan, &found).statements;
        let judged = statements.iter().find(|judged| judged.says.starts_with(says)).expect("it");
        assert_eq!(judged.verdict, verdict, "{judged:?}");
        let reason = judged.reason.as_deref().unwrap_or_default();
        assert_eq!(reason.contains("not every round is: SmallBank, low."), transient != 30);
    }
}

#[test]
fn the_median_of_workloads_is_that_of_most() {
    let says = "all-DRAM compared with NVCaracal: less than twice";
    for (slow, verdict) in [
        (&["ycsb-high", "tpcc-high", "tpcc-low"][..], Verdict::Holds),
        (&["ycsb-high", "tpcc-high", "tpcc-low", "ycsb-low"], Verdict::HoldsMoreWeakly),
        (
            &["ycsb-high", "tpcc-high", "tpcc-low", "ycsb-low", "smallbank-low"],
            Verdict::DoesNotHold,
        ),
    ] {
        let found = judged("fig10", says, Scale::Small, |workload, series| {
            let times = if slow.contains(&workload) { 3.5 } else { 1.5 };
            Some(if series == "all-DRAM" { times } else { 1.0 })
        });
        assert_eq!((found.verdict, found.ours.len()), (verdict, 1), "{found:?}");
        assert_eq!(found.ours[0].of, "median of 8 workloads");
    }
}

#[test]
fn margins_of_two_workloads_are_compared() {
    let says = "SmallBank: NVCaracal is faster than Zen by a wider margin";
    for (low, high, verdict, text) in [
        (1.2, 1.5, Verdict::Holds, "1.25 times"),
        (1.5, 1.53, Verdict::HoldsMoreWeakly, "1.02 times"),
        // Faster than Zen in both, and everything is faster under contention.
        (1.5, 1.2, Verdict::DoesNotHold, "0.80 times"),
    ] {
        let found = judged("fig6", says, Scale::Small, |workload, series| {
            let (machine, own) =
                if workload.ends_with("-high") { (700.0, high) } else { (300.0, low) };
            Some(machine * if series == "NVCaracal" { own } else { 1.0 })
        });
        assert_eq!((found.verdict, found.ours[0].text.as_str()), (verdict, text), "{found:?}");
    }
}

#[test]
fn nothing_is_judged_without_runs_nor_times_of_tiny_ones() {
    let says = "YCSB, high contention: NVCaracal compared with all-NVMM";
    let found =
        judged("fig7", says, Scale::Small, |_, series| (series != "all-NVMM").then_some(1.0));
    assert_eq!(found.verdict, Verdict::CannotBeShown);
    assert!(found.reason.expect("one").contains("all-NVMM, YCSB, high: it has not run yet"));
    let found = judged("fig7", says, Scale::Smoke, |_, _| Some(1.0));
    assert_eq!((found.verdict, found.ours.len()), (Verdict::CannotBeShown, 1));
    // Counts mean something at every scale.
    let says = "YCSB and SmallBank, low contention: transient";
    let found = judged("fig7", says, Scale::Smoke, |_, _| Some(1.0));
    assert_eq!((found.verdict, found.ours[0].text.as_str()), (Verdict::Holds, "3.0 %"));
    let says = "TPC-C, low contention: reverting";
    let found = judged("fig11", says, Scale::Full, |_, _| Some(1.0));
    assert_eq!(found.verdict, Verdict::CannotBeShown);
    let says = "Most workloads recover in 2 s";
    for (scale, verdict) in [(Scale::Small, Verdict::CannotBeShown), (Scale::Full, Verdict::Holds)]
    {
        assert_eq!(judged("fig11", says, scale, |_, _| Some(1.0)).verdict, verdict);
    }
}

#[test]
fn series_are_compared_within_rounds() {
    let plan = plan_of(&["fig12"], Scale::Small, 3);
    // The machine is twice as fast in each round as in the one before.
    let found = found_by(&plan, |run| {
        let machine = f64::from(1 << run.round);
        let own = if run.uses[0].series == "100 %" { 1.5 } else { 1.0 };
        Some(Outcome::Report(canned(1000.0 * machine * own)))
    });
    let report = report_of(&plan, &found);
    let of = |judged: &&Judged| judged.says.starts_with("SmallBank, high");
    let judged = report.statements.iter().find(of).expect("a statement");
    assert_eq!((judged.verdict, judged.ours[0].text.as_str()), (Verdict::Holds, "+50.0 %"));
}

/// A figure's statement that begins so, of three rounds that came to these outcomes.
fn judged_by_outcomes(
    figure: &str,
    says: &str,
    outcome: impl Fn(&str, &str, u64) -> Outcome,
) -> Judged {
    let plan = plan_of(&[figure], Scale::Small, 3);
    let found = found_by(&plan, |run| {
        let of = &run.uses[0];
        Some(outcome(&of.workload, &of.series, run.round))
    });
    let statements = report_of(&plan, &found).statements;
    statements.into_iter().find(|judged| judged.says.starts_with(says)).expect("a statement")
}

#[test]
fn a_round_that_was_given_up_has_no_number_and_the_others_count() {
    let says = "YCSB, high contention: NVCaracal compared with all-NVMM";
    let report = |throughput: f64| Outcome::Report(canned(throughput));
    let given_up = || Outcome::Failed("no memory".into());
    let of = |series: &str| if series == "NVCaracal" { 2.9 } else { 1.0 };
    // One round of one of both: two are left.
    let found = judged_by_outcomes("fig7", says, |_, series, round| match (series, round) {
        ("NVCaracal", 1) => given_up(),
        _ => report(of(series)),
    });
    assert_eq!((found.verdict, found.ours[0].text.as_str()), (Verdict::Holds, "2.90 times"));
    // No round has both.
    let found = judged_by_outcomes("fig7", says, |_, series, round| match (series, round) {
        ("NVCaracal", 0) | ("all-NVMM", 1 | 2) => given_up(),
        _ => report(of(series)),
    });
    assert_eq!((found.verdict, found.ours.len()), (Verdict::CannotBeShown, 0), "{found:?}");
    // A series without a run says so in its words.
    for (words, outcome) in [
        ("the run failed: no memory", given_up()),
        ("this build cannot run it: no such design", Outcome::Unsupported("no such design".into())),
    ] {
        let found = judged_by_outcomes("fig7", says, |_, series, _| match series {
            "all-NVMM" => outcome.clone(),
            _ => report(of(series)),
        });
        assert_eq!(found.verdict, Verdict::CannotBeShown);
        assert!(found.reason.as_deref().is_some_and(|why| why.contains(words)), "{found:?}");
    }
}

#[test]
fn numbers_on_both_sides_have_both_reasons_and_more_than_the_papers_has_its_own() {
    let says = "Cached versions, TPC-C: faster with them by";
    let judge = |low: f64, high: f64| {
        judged("fig9", says, Scale::Small, |workload, series| {
            let with = if workload == "tpcc-low" { low } else { high };
            Some(if series == "NVCaracal" { with } else { 1.0 })
        })
    };
    let (below, above) = ("Every value that is read or written", "More of TPC-C fits");
    for (low, high, has) in [
        (1.01, 1.02, [false, false]),
        (0.8, 0.9, [true, false]),
        (1.2, 1.3, [false, true]),
        (0.8, 1.3, [true, true]),
    ] {
        let found = judge(low, high);
        let reason = found.reason.as_deref().unwrap_or_default();
        assert_eq!([below, above].map(|words| reason.contains(words)), has, "{found:?}");
    }
    let says = "Minor collection, uncontended YCSB-smallrow: faster with it by";
    let found = judged("fig9", says, Scale::Small, |_, series| {
        Some(if series == "NVCaracal" { 1.5 } else { 1.0 })
    });
    assert_eq!(found.verdict, Verdict::HoldsByMore, "{found:?}");
    let reason = found.reason.as_deref();
    assert!(reason.is_some_and(|why| why.starts_with("A major collection reads")), "{found:?}");
}

#[test]
fn workloads_are_counted_in_which_every_round_says_the_same() {
    let less = "Which versions to cache, by cost: hot versions only cost less than all";
    let more = "Which versions to cache, by cost: hot versions only cost more than all";
    // How many times the throughput with hot versions only; the best round of each series counts,
    // and what comes out without it must say the same.
    let judge = |says: &str, hot: &dyn Fn(&str) -> [f64; 3]| {
        judged_by_outcomes("fig9", says, |workload, series, round| {
            let is_hot = series == "hot versions cached";
            Outcome::Report(canned(if is_hot { hot(workload)[round as usize] } else { 1.0 }))
        })
    };
    let all = |_: &str| [1.1, 1.12, 1.11];
    let found = judge(less, &all);
    let text = found.ours[0].text.as_str();
    assert_eq!((found.verdict, text), (Verdict::Holds, "8 of 8 workloads"), "{found:?}");
    assert_eq!(judge(more, &all).verdict, Verdict::Holds);
    // One good round of three is the range of a workload, and no more.
    let some = |workload: &str| match workload {
        "ycsb-low" | "ycsb-high" | "tpcc-low" => [1.1, 0.9, 0.9],
        "tpcc-high" => [0.8, 0.81, 0.8],
        _ => [1.1, 1.12, 1.11],
    };
    let found = judge(less, &some);
    let text = found.ours[0].text.as_str();
    assert_eq!((found.verdict, text), (Verdict::HoldsMoreWeakly, "4 of 8 workloads"), "{found:?}");
    assert!(found.ours[0].of.starts_with("YCSB-smallrow, low; "), "{found:?}");
    let found = judge(more, &some);
    let text = found.ours[0].text.as_str();
    assert_eq!((found.verdict, text), (Verdict::HoldsMoreWeakly, "1 of 8 workloads"), "{found:?}");
    // A single round has no range.
    let found = judged("fig9", less, Scale::Small, |_, _| Some(1.0));
    assert_eq!(found.verdict, Verdict::CannotBeShown, "{found:?}");
    assert!(found.reason.is_some_and(|why| why.contains("one round has no range")));
}
