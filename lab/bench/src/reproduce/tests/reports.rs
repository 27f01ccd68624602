//! Reports show all that was found.

use super::super::data::{Found, Outcome, Recorded};
use super::super::html::render;
use super::super::scale::Scale;
use super::super::svg;
use super::{canned, found_by, plan_of, report_of, session, whole};

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
