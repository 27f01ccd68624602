//! Scenario files are sound, rules judge as they say, and reports show all that was found. Runs are
//! canned: what they came to is computed from their command lines.

use serde_json::{Value, json};

use super::data::{Found, Outcome, Recorded, Session};
use super::html::render;
use super::machine::Machine;
use super::plan::{Plan, Run};
use super::report::{ReproduceReport, report};
use super::scale::Scale;
use super::scenario::{FIGURES, MODEL_CORES, Plot, Scenario, Suite, figures_named};
use super::statement::{As, Rule};
use super::svg;
use super::verdict::{Judged, Verdict, is_open_below};

fn plan_of(names: &[&str], scale: Scale, rounds: u64) -> Plan {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let suite = Suite::of(&figures_named(&names).expect("known names"));
    Plan { suite, scale, rounds, workers: 2, seed: 1 }
}

fn session(scale: Scale, build: &str) -> Session {
    let machine =
        Machine { processor: "A & B <8>".into(), cores: 2, memory_gib: 16.0, kernel: "6.1".into() };
    Session { scale, build: build.into(), commit: None, machine }
}

fn lines_by_part() -> Value {
    let lines = json!({"flushed": 1.0, "pushed_out": 0.5, "past_cache": 0.25});
    let parts = [
        "tuples",
        "fields",
        "index",
        "pages",
        "log",
        "log_head",
        "log_buffer",
        "files",
        "other",
        "marks",
    ];
    parts.into_iter().map(|part| (part.to_string(), lines.clone())).collect()
}

/// A report of a run, with a throughput.
fn canned(throughput: f64) -> Value {
    let memory = ["index", "row_entries", "transient_pool", "cache", "persistent_rows"]
        .into_iter()
        .chain(["persistent_values", "input_log"])
        .map(|name| (name.to_string(), json!(1_000_000)))
        .collect::<serde_json::Map<_, _>>();
    let point = |cores| {
        json!({"cores": cores, "throughput_txn_per_s": throughput, "control_ms": 1.0,
            "execute_ms": 2.0})
    };
    json!({
        "throughput_txn_per_s": throughput,
        "points": MODEL_CORES.map(point),
        "device_note": "DRAM, with <waits>",
        "split_threshold": 4, "workers": 2, "error_percent": -3.0,
        "latency_ns": {"p50": 1e12 / throughput},
        "counters": {
            "transient_versions": 30, "persistent_versions": 970, "cache_hits": 1,
            "cache_misses": 1, "blocks_read_per_txn": 3.5, "blocks_written_per_txn": 2.5,
            "lines_written_per_txn": 7.0, "log_bytes_per_txn": 99.0,
            "waits_per_txn": 0.5, "waits": 5, "declared_keys": 50,
            "minor_collections_per_txn": 0.0, "major_collections_per_txn": 1.0,
            "lines_read_per_txn": 20.0, "fences_per_txn": 1.0, "media_bytes_written_per_txn": 9.0,
            "regions_ended": 9, "regions_ended_per_txn": 9.0, "regions_aborted_forbidden": 9,
            "regions_aborted_forbidden_per_txn": 1.0, "retries_per_txn": 0.1,
            "regions_fallbacks_per_txn": 0.1, "regions_aborted_write_set": 0,
            "regions_aborted_read_set": 0, "regions_aborted_conflict": 3, "log_records": 5,
        },
        "cpu_ns_per_txn": 2e9 / throughput,
        "by_cost": {"per_second": 1000.0, "latency_ns": 900.0, "device_ns": 100.0},
        "mb_per_second": 90.0, "cpu_ns": 30.0, "lines_read": 1.0, "lines_written": 1.0,
        "system_calls": 2.0,
        "counts": {
            "load_waits": 6.0,
            "written_by_part": lines_by_part(),
            "lines_read": 9.0, "lines_written": 5.0, "fences": 3.0, "system_calls": 0.5,
            "copied_bytes": 99.0,
        },
        "cost": {
            "shares": {"storage": 40.0, "recovery": 15.0, "index": 35.0, "other": 10.0},
            "per_second_overlapped": {"at_160": 950.0, "at_320": 900.0, "at_1280": 800.0},
            "cpu_ns": 900.0,
            "per_second": {"at_160": 900.0, "at_320": 800.0, "at_1280": 700.0},
            "per_second_by_sync": {
                "at_10": 900.0, "at_100": 800.0, "at_1000": 700.0, "at_10000": 90.0,
            },
        },
        "footprint": {"table": 9, "index": 8, "log": 7, "cache": 6, "file": 5, "other": 4},
        "memory_bytes": memory,
        "values": {
            "all": 1000, "inline": 990, "up_to_8_bytes": 10, "up_to_30_bytes": 600,
            "up_to_64_bytes": 800, "up_to_256_bytes": 900,
        },
        "recovery": {
            "open_device_ms": 0.5, "load_log_ms": 1.5, "scan_ms": 30.0, "rebuild_ms": 20.0,
            "replay_ms": 10.0, "total_ms": 62.0, "total": {"blocks_read": 5_000},
            "lines_read": 50, "lines_written": 7, "redone": 3, "undone": 1, "slots": 99,
            "lines_loaded": 20, "lines_redone": 30,
            "seconds": 0.001,
        },
    })
}

/// What the runs of a plan come to by a function of run.
fn found_by(plan: &Plan, outcome: impl Fn(&Run) -> Option<Outcome>) -> Found {
    let session = session(plan.scale, "b");
    let mut found = Found::default();
    for run in plan.runs() {
        if let Some(outcome) = outcome(&run) {
            found.add(Recorded::new(&session, &run, outcome));
        }
    }
    found
}

fn whole(plan: &Plan) -> Found {
    found_by(plan, |run| {
        let spread = 1000.0 * (1 + run.round) as f64;
        Some(Outcome::Report(canned(50_000.0 + spread + run.command().len() as f64)))
    })
}

fn report_of(plan: &Plan, found: &Found) -> ReproduceReport {
    report(plan, &session(plan.scale, "b"), found, false)
}

// --- Scenario files ---------------------------------------------------------------------------

/// Every name in a rule must exist, and a pair must have both halves.
fn check_rule(suite: &Suite, scenario: &Scenario, rule: &Rule) {
    let says = format!("{}: {rule:?}", scenario.figure);
    let series = |name: &String| scenario.series.iter().any(|series| series.name == *name);
    assert!(series(&rule.of) && rule.over.iter().all(series), "{says}");
    suite.metric(&rule.metric);
    if let Some(name) = &rule.over_metric {
        suite.metric(name);
    }
    assert!(!rule.workloads.is_empty(), "{says}");
    let all = rule.workloads.iter().chain(&rule.over_workloads);
    all.for_each(|name| assert!(scenario.workloads.contains(name), "{name}: {says}"));
    assert!([0, rule.workloads.len()].contains(&rule.over_workloads.len()), "{says}");
    if rule.form == As::TimesTheRatio {
        assert!(!rule.over.is_empty() && !rule.over_workloads.is_empty(), "{says}");
    }
    for [low, high] in [Some(rule.holds), rule.weaker].into_iter().flatten() {
        assert!(low <= high, "{says}");
    }
    if let Some(number) = rule.number {
        assert!((rule.holds[0]..=rule.holds[1]).contains(&number), "{says}");
        assert!(rule.holds.iter().any(|bound| bound.is_infinite()), "{says}");
    }
}

#[test]
fn scenarios_name_workloads_metrics_and_series_that_exist() {
    let plan = plan_of(&["all"], Scale::Small, 1);
    let suite = &plan.suite;
    let names: Vec<&str> = suite.scenarios.iter().map(|s| s.figure.as_str()).collect();
    let known: Vec<&str> = FIGURES.iter().skip(5).map(|(name, _)| *name).collect();
    assert_eq!(names, known);
    for scenario in &suite.scenarios {
        for workload in &scenario.workloads {
            let options = &suite.workload(workload).options;
            let first = options.split(' ').next().expect("a word");
            assert!(
                ["ycsb", "smallbank", "tpcc", "arulraj", "interfaces"].contains(&first),
                "{workload}: {options}"
            );
        }
        let parts = scenario.parts.iter().map(|part| &part.metric);
        let metrics = parts.chain(&scenario.columns).chain(&scenario.across);
        for name in metrics.chain([&scenario.metric]) {
            suite.metric(name);
        }
        assert_eq!(scenario.plot == Plot::Stacked, !scenario.parts.is_empty());
        assert_eq!(scenario.plot == Plot::Lines, scenario.across.is_some());
        assert!(!scenario.series.is_empty() && !scenario.devices.is_empty());
        let mut cores = scenario.series.iter().filter_map(|series| series.cores);
        assert!(cores.all(|cores| MODEL_CORES.contains(&cores)));
        for statement in &scenario.statements {
            let Some(rule) = &statement.rule else { continue };
            check_rule(suite, scenario, rule);
            // A reason for numbers that are below says nothing of those that are above.
            let is_share =
                rule.form == As::Value && suite.metric(&rule.metric).unit.starts_with('%');
            let can_be_above = rule.holds[1] < if is_share { 100.0 } else { f64::INFINITY };
            let both = can_be_above && !is_open_below(rule);
            assert!(!both || statement.above.is_some(), "{}: {}", scenario.figure, statement.says);
        }
    }
}

#[test]
fn names_stand_for_figures_and_unknown_ones_are_told_which_there_are() {
    let named = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        figures_named(&names)
    };
    assert_eq!(named(&[]).expect("those of the paper").len(), 8);
    assert_eq!(named(&["nv", "fig5"]).expect("those of the paper").len(), 8);
    assert_eq!(named(&["fig12", "fig5", "fig12"]).expect("two"), ["fig5", "fig12"]);
    assert_eq!(named(&["all"]).expect("all").len(), 37);
    assert_eq!(named(&["dbx"]).expect("those of the DBX family").len(), 7);
    assert_eq!(named(&["arulraj"]).expect("those of the six engines").len(), 11);
    assert_eq!(named(&["caracal"]).expect("those of Caracal").len(), 9);
    assert_eq!(named(&["caracal", "nv"]).expect("both").len(), 17);
    let error = named(&["fig5", "fig4"]).expect_err("there is no Figure 4");
    assert!(error.is_usage() && error.to_string().contains("fig12, histograms"), "{error}");
}

// --- Rules ------------------------------------------------------------------------------------

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

// --- Reports ----------------------------------------------------------------------------------

#[test]
fn each_figure_has_a_mark_and_a_row_for_each_data_point() {
    let plan = plan_of(&["all"], Scale::Small, 3);
    let report = report_of(&plan, &whole(&plan));
    assert_eq!((report.runs, report.failures.len()), (report.runs_planned, 0));
    let page = render(&report);
    let sections: Vec<&str> = page.split("<section>").skip(1).collect();
    assert_eq!(sections.len(), report.figures.len());
    for ((figure, section), scenario) in
        report.figures.iter().zip(sections).zip(&plan.suite.scenarios)
    {
        let section = section.split("</section>").next().expect("its first part");
        let points = scenario.workloads.len() * scenario.devices.len() * scenario.series.len();
        let count = |text: &str| section.matches(text).count();
        assert_eq!(count("class=\"datum\""), points, "{}", figure.figure);
        assert_eq!(count("<svg"), figure.panels.len());
        // One row more of each table is that of its headings: of runs, and of models.
        let kinds = [true, false].map(|is| scenario.series.iter().any(|of| of.is_model() == is));
        let tables = kinds.into_iter().filter(|kind| *kind).count();
        assert_eq!(count("<tr"), points + tables, "{}", figure.figure);
        assert_eq!(count("class=\"part\""), points * scenario.parts.len());
        assert_eq!(count("class=\"statement\""), scenario.statements.len());
        assert_eq!(count("no result"), 0);
    }
}

#[test]
fn plots_are_well_formed_and_nothing_leaves_the_picture() {
    let plan = plan_of(&["all"], Scale::Small, 2);
    let all = whole(&plan);
    let nothing = Found::default();
    for (found, is_empty) in [(&all, false), (&nothing, true)] {
        for figure in &report_of(&plan, found).figures {
            for panel in &figure.panels {
                let text = svg::plot(figure, panel).into_string();
                let document = roxmltree::Document::parse(&text)
                    .unwrap_or_else(|error| panic!("{error}: {text}"));
                let root = document.root_element();
                let size: Vec<f64> = root
                    .attribute("viewBox")
                    .expect("a size")
                    .split(' ')
                    .map(|number| number.parse().expect("a number"))
                    .collect();
                let bars = || root.descendants().filter(|node| node.has_tag_name("rect"));
                let circles = root.descendants().filter(|node| node.has_tag_name("circle"));
                assert_eq!(bars().count() + circles.count() == 0, is_empty, "{text}");
                for bar in bars() {
                    let number = |name| -> f64 {
                        bar.attribute(name).expect("it has one").parse().expect("a number")
                    };
                    assert!(number("width") > 0.0 && number("height") > 0.0, "{text}");
                    assert!(number("x") + number("width") <= size[2] + 0.1, "{text}");
                    assert!(number("y") + number("height") <= size[3] + 0.1, "{text}");
                }
            }
        }
    }
}

#[test]
fn words_of_runs_are_escaped_and_shown_where_a_number_is_missing() {
    let plan = plan_of(&["fig10"], Scale::Small, 1);
    let found = found_by(&plan, |run| {
        let command = run.command();
        Some(match (command.contains("no-logging"), command.contains("all-dram")) {
            (true, _) => Outcome::Unsupported("error: no <design> & more".into()),
            (_, true) => Outcome::Failed("<script>alert(1)</script>".into()),
            _ => Outcome::Report(canned(1000.0)),
        })
    });
    let report = report_of(&plan, &found);
    assert_eq!(report.failures.len(), 8, "those of all-DRAM");
    assert_eq!(report.runs * 5, report.runs_planned * 2, "NVCaracal on two devices");
    let page = render(&report);
    for text in ["<script", "<design>", "B <8>", "with <waits>"] {
        assert!(!page.contains(text), "{text} is not escaped");
    }
    for text in ["no &lt;design&gt; &amp; more", "A &amp; B &lt;8&gt;", "no result"] {
        assert!(page.contains(text), "{text} is not there");
    }
    for text in ["http:", "https:", "src=", "@import"] {
        let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains(text), "{text} leads elsewhere");
    }
}

#[test]
fn lines_of_runs_are_read_again_and_others_refused() {
    let plan = plan_of(&["fig8"], Scale::Smoke, 1);
    let own = session(Scale::Smoke, "b");
    let run = &plan.runs()[0];
    let line = |outcome| {
        let recorded = Recorded::new(&own, run, outcome);
        format!("{}\n", serde_json::to_string(&recorded).expect("plain data"))
    };
    let reported = line(Outcome::Report(canned(7.0)));
    assert!(Found::read(&reported, &own).expect("its own").has(run));
    // What failed is tried again; what reported afterwards counts.
    let failed = line(Outcome::Failed("no memory".into()));
    assert!(!Found::read(&failed, &own).expect("its own").has(run));
    let found = Found::read(&format!("{failed}{reported}"), &own).expect("its own");
    assert!(found.has(run) && found.failures().is_empty());
    for (text, asked, said) in [
        (&reported, session(Scale::Small, "b"), "is of scale smoke, asked for is small"),
        (&reported, session(Scale::Smoke, "c"), "another build"),
        (&"{}\n".to_string(), own.clone(), "line 1 of runs.jsonl is no run"),
    ] {
        let error = Found::read(text, &asked).expect_err("refused");
        assert!(error.is_usage() && error.to_string().contains(said), "{error}");
    }
}
