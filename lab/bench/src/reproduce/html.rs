//! `report.html`: one page without anything from elsewhere, for readers who do not know the paper.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::data::Spread;
use super::report::{FigureReport, Group, Panel, Point, Quantity, ReproduceReport};
use super::scale::Scale;
use super::svg;
use super::verdict::{Judged, Verdict};

const STYLE: &str = include_str!("report.css");

/// Words that the report uses, and what they mean.
const WORDS: [(&str, &str); 7] = [
    ("Epoch", "transactions that are ordered together, and run and made durable together."),
    ("Transient version", "a value that the same epoch overwrites again; kept in DRAM only."),
    ("Persistent version", "the last value of a row in an epoch; written to persistent memory."),
    ("Input log", "the calls of an epoch, from which a crashed epoch is run again."),
    (
        "Minor, major collection",
        "freeing a row's old version when the row is written next, or at \
      the beginning of the next epoch.",
    ),
    ("Cached version", "a copy of a row in DRAM that saves reads of persistent memory."),
    ("Contention", "how much transactions update the same few rows (hot rows)."),
];

/// Engines that are compared.
const DESIGNS: [(&str, &str); 7] = [
    ("NVCaracal", "logs inputs; transient versions in DRAM, final ones in persistent memory."),
    ("no-logging", "the same without the input log; cannot recover."),
    ("all-DRAM", "the same wholly in DRAM; cannot recover."),
    ("hybrid", "no log; every version in persistent memory, version arrays and a cache in DRAM."),
    ("all-NVMM", "no log; versions and version arrays in persistent memory."),
    (
        "Zen",
        "no epochs and no log; a transaction's rows are written to new places in persistent \
      memory. With optimistic (OCC) or multi-version (MVCC) concurrency control.",
    ),
    ("write-behind log", "changes are written first, then a log of which transactions count."),
];

/// What the emulated device leaves out.
const LIMITS: [&str; 5] = [
    "Reads and writes do not take bandwidth from each other.",
    "A read that has to wait for the one before costs no more than one that does not.",
    "A line that was read in one transaction may be in the processor's cache in the next one.",
    "Reads that a processor makes to complete a line that is written in part are charged only \
     where the program reads the line, too.",
    "On ordinary machines times differ from run to run, on virtual ones by a factor of 1.5: trust \
     counts (versions, blocks, lines, bytes) more than times.",
];

/// The page.
#[must_use]
pub fn render(report: &ReproduceReport) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "NVCaracal, reproduced" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(report))
                (surroundings(report))
                (settings(report))
                @for figure in &report.figures { (section(report, figure)) }
                (statements(report))
                (repeat(report))
            }
        }
    };
    page.into_string()
}

fn head(report: &ReproduceReport) -> Markup {
    html! {
        h1 { "NVCaracal, reproduced" }
        p {
            "The experiments of " em { "Integrating Non-Volatile Main Memory in a Deterministic \
            Database" } " (EuroSys '23), made again with this implementation: what the paper says, \
            what came out here, and whether it holds."
        }
        @if report.session.scale == Scale::Smoke {
            p.banner { "Scale smoke: sizes are tiny, to see that everything works. Times mean \
                nothing, and statements about them are not judged." }
        }
        @if report.runs < report.runs_planned {
            p.banner {
                (report.runs) " of " (report.runs_planned) " runs are in this report"
                @if report.interrupted { "; it was interrupted, and the same command goes on" }
                "."
            }
        }
        p {
            @for verdict in Verdict::ALL {
                (badge(verdict)) " " (report.count(verdict)) " \u{a0} "
            }
        }
        nav {
            @for figure in &report.figures {
                a href=(format!("#{}", figure.figure)) { (short(&figure.title)) }
            }
            a href="#statements" { "All statements" }
        }
    }
}

/// The title up to its colon.
fn short(title: &str) -> &str {
    title.split(':').next().unwrap_or(title)
}

fn badge(verdict: Verdict) -> Markup {
    let class = match verdict {
        Verdict::Holds => "verdict holds",
        Verdict::HoldsMoreWeakly => "verdict holds_more_weakly",
        Verdict::DoesNotHold => "verdict does_not_hold",
        Verdict::CannotBeShown => "verdict cannot_be_shown",
    };
    html! { span class=(class) { (verdict.words()) } }
}

fn surroundings(report: &ReproduceReport) -> Markup {
    let machine = &report.session.machine;
    let commit = report.session.commit.as_deref().unwrap_or("unknown commit");
    html! {
        h2 { "Machine and device" }
        dl {
            dt { "Processor" } dd { (machine.processor) ", " (machine.cores) " cores" }
            dt { "Memory" } dd { (number(machine.memory_gib, 1)) " GiB" }
            dt { "Kernel" } dd { (machine.kernel) }
            dt { "Build" } dd { (report.session.build) ", " (commit) }
            dt { "Runs" } dd {
                (report.rounds) " rounds of each, " (report.workers) " worker threads, every run \
                in a process of its own, all series interleaved; medians, with ranges"
            }
            dt { "Paper" } dd {
                "8 cores of an Intel Xeon Silver 4215, 96 GB of DRAM, 256 GB of Intel Optane \
                Persistent Memory"
            }
            @for (device, model) in &report.devices { dt { (device) } dd { (model) } }
        }
        p { "There is no persistent memory in this machine. The devices are models of it; what \
            they leave out:" }
        ul { @for limit in LIMITS { li { (limit) } } }
        h3 { "Words" }
        dl { @for (word, means) in WORDS { dt { (word) } dd { (means) } } }
        h3 { "Designs" }
        dl { @for (design, is) in DESIGNS { dt { (design) } dd { (is) } } }
    }
}

fn number(value: f64, digits: usize) -> String {
    svg::number(value, digits)
}

fn settings(report: &ReproduceReport) -> Markup {
    html! {
        h2 id="settings" { "Settings (Tables 1 to 4)" }
        p {
            "Sizes are smaller than in the paper unless the scale is full; contention is that of \
            the paper: as many updates of a row in an epoch where keys are uniform (6 in 100), and \
            about as many of a hot row as make the same share of versions transient. The paper \
            runs 49 epochs of 100,000 transactions."
        }
        div.scroll { table {
            thead { tr {
                th { "Workload" } th { "Paper" } th { "Here" } th.n { "Transactions of an epoch" }
                th.n { "Epochs" }
            } }
            tbody { @for setting in &report.settings { tr {
                td.k { (setting.workload) } td.w { (setting.paper) } td.w { (setting.here) }
                td.n { (number(setting.epoch_size as f64, 0)) } td.n { (setting.epochs) }
            } } }
        } }
    }
}

fn section(report: &ReproduceReport, figure: &FigureReport) -> Markup {
    let statements = report.statements.iter().filter(|judged| judged.figure == figure.figure);
    html! {
        section {
            h2 id=(figure.figure) { (figure.title) }
            p { (figure.question) }
            (legend(figure))
            div.panels { @for panel in &figure.panels {
                figure {
                    figcaption { (panel.title) }
                    @if figure.plot == "lines" { (lines_legend(panel)) }
                    (svg::plot(figure, panel))
                }
            } }
            (table(figure))
            div.said {
                p { strong { "The paper: " } (figure.paper) }
                p { strong { "What is different here: " } (figure.here) }
            }
            @for judged in statements { (statement(judged)) }
        }
    }
}

/// What the colours of stacked bars mean.
fn legend(figure: &FigureReport) -> Markup {
    html! { @if !figure.parts.is_empty() {
        ul.legend { @for (index, (part, group)) in figure.parts.iter().enumerate() {
            li {
                (swatch(svg::part_colour(&figure.parts, index))) (part)
                @if !group.is_empty() { small { " (" (group) ")" } }
            }
        } }
    } }
}

fn lines_legend(panel: &Panel) -> Markup {
    html! {
        ul.legend { @for (group, colour) in panel.groups.iter().zip(svg::COLOURS.iter().cycle()) {
            li { (swatch(colour)) (group.title) }
        } }
    }
}

fn swatch(colour: &str) -> Markup {
    html! { span.swatch style=(format!("background:{colour}")) {} }
}

fn table(figure: &FigureReport) -> Markup {
    let groups = figure
        .panels
        .iter()
        .flat_map(|panel| panel.groups.iter().map(move |group| (panel.title.as_str(), group)));
    let has_series = figure.panels.iter().any(|p| p.groups.iter().any(|g| g.points.len() > 1));
    html! {
        div.scroll { table {
            thead { tr {
                th { "Workload" } th { "Series" }
                (heading(&figure.quantity)) th.n { "Range" }
                @if has_series { th.n { "Compared with the first" } }
                @for (part, _) in &figure.parts { th.n { (part) small { (figure.quantity.unit) } } }
                @for column in &figure.columns { (heading(column)) }
            } }
            tbody { @for (panel, group) in groups { (rows(figure, panel, group, has_series)) } }
        } }
    }
}

fn heading(quantity: &Quantity) -> Markup {
    html! { th.n { (quantity.title) small { (quantity.unit) } } }
}

fn rows(figure: &FigureReport, panel: &str, group: &Group, has_series: bool) -> Markup {
    // Where panels are devices, the title of the workload does not say which.
    let on = panel.split_once(", ").map(|(_, device)| device);
    html! { @for (index, point) in group.points.iter().enumerate() {
        tr class=(if index == 0 { "first" } else { "" }) {
            td.k { @if index == 0 {
                (group.title) @if let Some(device) = on { small { " on " (device) } }
            } }
            td.k { (point.series) }
            (cells(figure, point, has_series))
        }
    } }
}

fn cells(figure: &FigureReport, point: &Point, has_series: bool) -> Markup {
    let columns = figure.parts.len() + figure.columns.len() + 2 + usize::from(has_series);
    let digits = figure.quantity.digits;
    let range = |spread: Spread| match spread.most > spread.least {
        true => format!("{} to {}", number(spread.least, digits), number(spread.most, digits)),
        false => String::new(),
    };
    html! {
        @if let Some(why) = &point.why_none {
            td.soft colspan=(columns) { (why) }
        } @else {
            (cell(point.value, digits))
            td.n { (point.value.map(range).unwrap_or_default()) }
            @if has_series { td.n {
                (point.percent_more.map(|more| format!("{more:+.1} %")).unwrap_or_default())
            } }
            @for part in &point.parts { (cell(*part, digits)) }
            @for (value, column) in point.columns.iter().zip(&figure.columns) {
                (cell(*value, column.digits))
            }
        }
    }
}

fn cell(value: Option<Spread>, digits: usize) -> Markup {
    html! { td.n { (value.map_or_else(|| "-".to_string(), |value| number(value.median, digits))) } }
}

/// Our numbers, each with what it is of, as far as that is needed.
fn ours(judged: &Judged) -> Markup {
    html! { @for (index, ours) in judged.ours.iter().enumerate() {
        @if index > 0 { "; " }
        (ours.of) @if let Some(over) = &ours.over { " compared with " (over) } ": "
        strong { (ours.text) }
    } }
}

fn statement(judged: &Judged) -> Markup {
    html! {
        div.statement {
            p { (badge(judged.verdict)) " " (judged.says) }
            p { small { "paper (" (judged.section) "): " } strong { (judged.paper) } }
            @if !judged.ours.is_empty() { p { small { "here: " } (ours(judged)) } }
            @if let Some(reason) = &judged.reason { p.soft { (reason) } }
        }
    }
}

fn statements(report: &ReproduceReport) -> Markup {
    html! {
        h2 id="statements" { "All statements" }
        p { "Judged by rules that are part of the scenarios: medians of all rounds, series \
            compared within rounds." }
        div.scroll { table {
            thead { tr {
                th { "Section" } th { "Statement" } th { "Paper" } th { "Here" } th { "Verdict" }
            } }
            tbody { @for judged in &report.statements { tr {
                td { (judged.section) small { " (" (judged.figure) ")" } }
                td.w { (judged.says) } td { (judged.paper) } td.w { (ours(judged)) }
                td { (badge(judged.verdict)) }
            } } }
        } }
    }
}

fn repeat(report: &ReproduceReport) -> Markup {
    let figures: Vec<&str> = report.figures.iter().map(|f| f.figure.as_str()).collect();
    let (scale, rounds) = (report.session.scale.name(), report.rounds);
    let command = format!(
        "nvcaracal-lab reproduce {} --scale {scale} --rounds {rounds} --workers {} --seed {}",
        figures.join(" "),
        report.workers,
        report.seed
    );
    html! {
        h2 { "How to repeat it" }
        p { code { (command) } }
        p { "Each run is a command of its own, " code { "nvcaracal-lab bench ..." } "; all of \
            them, with everything that they reported, are in " code { "runs.jsonl" } ", one to a \
            line; what this page shows is in " code { "report.json" } "." }
        @if !report.failures.is_empty() {
            h3 { "Runs that failed" }
            ul { @for failed in &report.failures {
                li { code { (failed.command) } ": " (failed.words) }
            } }
        }
    }
}
