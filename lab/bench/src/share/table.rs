//! The share of the limit as people read it.

use bench::report::{grouped, table};

use super::measure::{PhaseShare, Share};

/// The share as text: what the limit is made of, then each phase.
pub(crate) fn render(share: &Share) -> String {
    let costs = &share.costs;
    let sync = match costs.log_sync_ns {
        0.0 => String::new(),
        ns => format!(", {:.0} us an epoch's log", ns / 1e3),
    };
    let rows = share.phases.iter().filter(|phase| phase.measured_ns > 0.0).map(row).collect();
    let columns = ["phase", "ms", "least ms", "%", "waiting %", "bound by"];
    format!(
        "\nLimits: {:.0} % of the time is what the memory work takes alone, {} txn/s\n\
         measured now, {} threads at once: {:.1} ns a random line fetched, {:.1} the next; stored \
         past the\ncache {:.1}, the next {:.1}; flushed {:.1}; {:.1} ns a fence{sync}\n{}\n{}",
        share.percent,
        grouped(share.limit_txn_per_s),
        costs.threads,
        costs.read_line_ns,
        costs.read_next_line_ns,
        costs.store_nt_line_ns,
        costs.store_nt_next_line_ns,
        costs.flush_line_ns,
        costs.fence_ns,
        table(&columns, rows),
        if share.phases.iter().any(|phase| phase.percent > 100.0) {
            "(more than 100 %: the processor's caches held what is counted as fetched or written)\n"
        } else {
            ""
        },
    )
}

fn row(phase: &PhaseShare) -> Vec<String> {
    vec![
        phase.phase.replace('_', " "),
        format!("{:.2}", phase.measured_ns / 1e6),
        format!("{:.2}", phase.least_ns / 1e6),
        format!("{:.0}", phase.percent),
        format!("{:.0}", phase.waiting_percent),
        phase.bound_by.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roofline::Costs;
    use crate::share::Parts;

    #[test]
    fn phases_without_time_are_left_out_and_caches_are_explained_where_they_show() {
        let phase = |phase, measured_ns, percent| PhaseShare {
            phase,
            measured_ns,
            least_ns: 1e6,
            percent,
            waiting_percent: 7.0,
            bound_by: "reads",
            parts: Parts::default(),
        };
        let phases = vec![phase("append", 2e6, 50.0), phase("remove", 0.0, 0.0)];
        let costs = Costs::default();
        let mut share = Share { costs, percent: 50.4, limit_txn_per_s: 1e6, phases };
        let text = render(&share);
        for words in ["50 % of the time", "1,000,000 txn/s", "append", "2.00", "1.00", "reads"] {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
        assert!(!text.contains("remove") && !text.contains("caches held"), "{text}");
        share.phases[0].percent = 101.0;
        assert!(render(&share).contains("caches held"));
    }
}
