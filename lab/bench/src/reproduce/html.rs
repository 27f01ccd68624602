//! `report.html`: one page without anything from elsewhere, for readers who do not know the paper.

use bench::report::Spread;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::numbers::Ours;
use super::papers::{Paper, papers_of};
use super::report::{FigureReport, Group, Panel, Point, Quantity, ReproduceReport};
use super::scale::Scale;
use super::svg;
use super::verdict::{Judged, Verdict};

const STYLE: &str = include_str!("report.css");

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

/// How the cost of a transaction is computed.
const COST: &str = "Throughput by cost is that of all workers if a transaction took each of them \
     its cost: the processor time of all threads in epochs, and the time of the device. Neighbours \
     of the machine only add to it, so the best round counts; its range is what comes out without \
     one of the rounds. Processor time has in it what a worker spins while it waits for another \
     one or at the end of a phase, flushes and fences. It leaves out the time of a worker that \
     sleeps or has no processor, so that the clock's throughput is lower. A device is waited for \
     by spinning, too: these waits are taken out of the processor time.";

/// The page.
#[must_use]
pub fn render(report: &ReproduceReport) -> String {
    let papers = papers_of(&report.figures);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (heading_of(&papers)) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(report, &papers))
                (surroundings(report, &papers))
                (settings(report, &papers))
                @for figure in &report.figures { (section(report, figure)) }
                (statements(report))
                (repeat(report))
            }
        }
    };
    page.into_string()
}

fn heading_of(papers: &[&Paper]) -> String {
    let systems: Vec<&str> = papers.iter().map(|paper| paper.system).collect();
    format!("{}, reproduced", systems.join(" and "))
}

fn head(report: &ReproduceReport, papers: &[&Paper]) -> Markup {
    html! {
        h1 { (heading_of(papers)) }
        p {
            "The experiments of "
            @for (index, paper) in papers.iter().enumerate() {
                @if index > 0 { " and of " }
                em { (paper.title) } " (" (paper.published) ")"
            }
            ", made again with this implementation: what the paper says, what came out here, and \
            whether it holds."
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
        (verdicts(report))
    }
}

/// How many statements have which verdict: all together, and of each figure, which it leads to.
fn verdicts(report: &ReproduceReport) -> Markup {
    let of = |figure: Option<&FigureReport>, verdict| {
        let is_it = |judged: &&Judged| {
            figure.is_none_or(|figure| judged.figure == figure.figure) && judged.verdict == verdict
        };
        report.statements.iter().filter(is_it).count()
    };
    let counts = |figure| {
        let counts = Verdict::ALL.map(|verdict| (verdict, of(figure, verdict)));
        html! { @for (verdict, count) in counts { @if count > 0 {
            span class=(class(verdict)) { (verdict.words()) " " (count) } " "
        } } }
    };
    html! {
        nav {
            p { a href="#statements" { "All statements" } " " (counts(None)) }
            @for figure in &report.figures { p {
                a href=(format!("#{}", figure.figure)) { (short(&figure.title)) } " "
                (counts(Some(figure)))
            } }
        }
    }
}

/// The title up to its colon.
fn short(title: &str) -> &str {
    title.split(':').next().unwrap_or(title)
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "verdict holds",
        Verdict::HoldsByMore => "verdict holds_by_more",
        Verdict::RoundsDiffer => "verdict rounds_differ",
        Verdict::HoldsMoreWeakly => "verdict holds_more_weakly",
        Verdict::DoesNotHold => "verdict does_not_hold",
        Verdict::CannotBeShown => "verdict cannot_be_shown",
    }
}

fn badge(verdict: Verdict) -> Markup {
    html! { span class=(class(verdict)) { (verdict.words()) } }
}

fn surroundings(report: &ReproduceReport, papers: &[&Paper]) -> Markup {
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
            @for paper in papers { dt { (paper.system) "'s paper" } dd { (paper.machine) } }
            @for (device, model) in &report.devices { dt { (device) } dd { (model) } }
        }
        @if report.devices.keys().any(|device| device.starts_with("emulated")) {
            p { "There is no persistent memory in this machine. The devices are models of it; \
                what they leave out:" }
            ul { @for limit in LIMITS { li { (limit) } } }
        }
        @if report.statements.iter().any(|judged| !judged.by_clock.is_empty()) {
            h3 { "Cost" }
            p { (COST) }
            @for (device, price) in &report.prices { p {
                "In its place each block of 256 bytes of " (device) " costs what it took in the \
                mean of all runs: " (number(price.read_ns, 1)) " ns to read, "
                (number(price.written_ns, 1)) " ns to write. On other devices a run costs what it \
                waited."
            } }
        }
        @for paper in papers {
            h3 { "Words of " (paper.system) "'s paper" }
            dl { @for (word, means) in paper.words { dt { (word) } dd { (means) } } }
            h3 { "Designs in " (paper.system) "'s paper" }
            dl { @for (design, is) in paper.designs { dt { (design) } dd { (is) } } }
        }
    }
}

fn number(value: f64, digits: usize) -> String {
    svg::number(value, digits)
}

fn settings(report: &ReproduceReport, papers: &[&Paper]) -> Markup {
    html! {
        h2 id="settings" { "Settings" }
        @for paper in papers { p { strong { (paper.system) ": " } (paper.sizes) } }
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
            (tables(figure))
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

/// What is in a table of a figure: that of its runs, or that of its models.
struct Shape<'a> {
    figure: &'a FigureReport,
    panels: Vec<&'a Panel>,
    has_ranges: bool,
    has_series: bool,
    /// Which of the further columns have a number.
    columns: Vec<bool>,
}

impl<'a> Shape<'a> {
    fn new(figure: &'a FigureReport, is_model: bool) -> Self {
        let panels: Vec<&Panel> =
            figure.panels.iter().filter(|panel| panel.is_model == is_model).collect();
        let groups = || panels.iter().flat_map(|panel| &panel.groups);
        let points = || groups().flat_map(|group| &group.points);
        let has_range = |point: &Point| point.value.is_some_and(|value| value.most > value.least);
        let has = |column: usize| points().any(|point| point.columns[column].is_some());
        Self {
            has_ranges: points().any(has_range),
            has_series: groups().any(|group| group.points.len() > 1),
            columns: (0..figure.columns.len()).map(has).collect(),
            figure,
            panels,
        }
    }

    /// The further columns that have a number.
    fn shown<'s, T>(&'s self, columns: &'s [T]) -> impl Iterator<Item = &'s T> {
        columns
            .iter()
            .zip(&self.columns)
            .filter_map(|(column, is_shown)| is_shown.then_some(column))
    }
}

fn tables(figure: &FigureReport) -> Markup {
    let shapes = [false, true].map(|is_model| Shape::new(figure, is_model));
    html! { @for shape in shapes.iter().filter(|shape| !shape.panels.is_empty()) {
        (table(shape))
    } }
}

fn table(shape: &Shape<'_>) -> Markup {
    let figure = shape.figure;
    let panels = shape.panels.iter();
    let groups = panels
        .flat_map(|panel| panel.groups.iter().map(move |group| (panel.title.as_str(), group)));
    html! {
        div.scroll { table {
            thead { tr {
                th { "Workload" } th { "Series" }
                (heading(&figure.quantity)) @if shape.has_ranges { th.n { "Range" } }
                @if shape.has_series { th.n { "Compared with the first" } }
                @for (part, _) in &figure.parts { th.n { (part) small { (figure.quantity.unit) } } }
                @for column in shape.shown(&figure.columns) { (heading(column)) }
            } }
            tbody { @for (panel, group) in groups { (rows(shape, panel, group)) } }
        } }
    }
}

fn heading(quantity: &Quantity) -> Markup {
    html! { th.n { (quantity.title) small { (quantity.unit) } } }
}

fn rows(shape: &Shape<'_>, panel: &str, group: &Group) -> Markup {
    // Where panels are devices, the title of the workload does not say which.
    let on = panel.split_once(", ").map(|(_, device)| device);
    html! { @for (index, point) in group.points.iter().enumerate() {
        tr class=(if index == 0 { "first" } else { "" }) {
            td.k { @if index == 0 {
                (group.title) @if let Some(device) = on { small { " (" (device) ")" } }
            } }
            td.k { (point.series) }
            (cells(shape, point))
        }
    } }
}

fn cells(shape: &Shape<'_>, point: &Point) -> Markup {
    let figure = shape.figure;
    let further = shape.shown(&figure.columns).count();
    let columns = figure.parts.len()
        + further
        + 1
        + usize::from(shape.has_ranges)
        + usize::from(shape.has_series);
    let digits = figure.quantity.digits;
    let range = |spread: Spread| match spread.most > spread.least {
        true => format!("{} to {}", number(spread.least, digits), number(spread.most, digits)),
        false => String::new(),
    };
    let values: Vec<(&Option<Spread>, &Quantity)> =
        shape.shown(&point.columns).zip(shape.shown(&figure.columns)).collect();
    html! {
        @if let Some(why) = &point.why_none {
            td.soft colspan=(columns) { (why) }
        } @else {
            (cell(point.value, digits))
            @if shape.has_ranges { td.n { (point.value.map(range).unwrap_or_default()) } }
            @if shape.has_series { td.n {
                (point.percent_more.map(|more| format!("{more:+.1} %")).unwrap_or_default())
            } }
            @for part in &point.parts { (cell(*part, digits)) }
            @for (value, column) in values { (cell(*value, column.digits)) }
        }
    }
}

fn cell(value: Option<Spread>, digits: usize) -> Markup {
    html! { td.n { (value.map_or_else(|| "-".to_string(), |value| number(value.median, digits))) } }
}

/// Our numbers, each with what it is of, as far as that is needed.
fn ours(numbers: &[Ours]) -> Markup {
    html! { @for (index, ours) in numbers.iter().enumerate() {
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
            @if !judged.ours.is_empty() { p { small { "here: " } (ours(&judged.ours)) } }
            @if !judged.by_clock.is_empty() {
                p.soft { small { "by the clock: " (ours(&judged.by_clock)) } }
            }
            @if let Some(reason) = &judged.reason { p.soft { (reason) } }
        }
    }
}

fn statements(report: &ReproduceReport) -> Markup {
    html! {
        h2 id="statements" { "All statements" }
        p { "Judged by rules that are part of the scenarios: medians of all rounds, series \
            compared within rounds; costs by their best rounds." }
        div.scroll { table {
            thead { tr {
                th { "Section" } th { "Statement" } th { "Paper" } th { "Here" } th { "Verdict" }
            } }
            tbody { @for judged in &report.statements { tr {
                td { (judged.section) small { " (" (judged.figure) ")" } }
                td.w { (judged.says) } td { (judged.paper) } td.w { (ours(&judged.ours)) }
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
