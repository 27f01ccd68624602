//! Scenario files are sound.

use super::super::scale::Scale;
use super::super::scenario::{FIGURES, MODEL_CORES, Plot, Scenario, Suite, figures_named};
use super::super::statement::{As, Rule};
use super::super::verdict::is_open_below;
use super::plan_of;

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
    // What is counted is compared with something.
    assert!(!rule.take.counts() || (rule.form != As::Value && !rule.over.is_empty()), "{says}");
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
