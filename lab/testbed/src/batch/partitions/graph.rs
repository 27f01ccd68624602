//! The dependency graph of a partition: which pieces must have ended before a piece may run.
//!
//! A target has the pieces that accessed it last, all in the same mode, and those before them. A
//! piece that goes with the last ones depends on those before; any other depends on the last ones,
//! which then are those before. So a chain of writes is a chain of edges, and readers between two
//! writes depend on the first, and the second on them. One worker makes and uses the graph, so
//! nothing in it is shared; its parts lie in arrays that are used again in the next batch.

use super::super::footprint::{Access, Mode, Target};
use super::cut::Piece;

/// No edge, no member.
const NONE: u32 = u32::MAX;

/// A piece, and what it waits for.
#[derive(Debug, Clone, Copy)]
struct Node {
    piece: Piece,
    /// Pieces that it depends on and that have not ended.
    missing: u32,
    /// Pieces that depend on it.
    edges: u32,
}

/// The pieces that accessed a target last, and those before them.
#[derive(Debug, Clone, Copy)]
struct Last {
    target: Target,
    mode: Mode,
    members: u32,
    before: u32,
}

/// An element of a list: of edges, or of members.
#[derive(Debug, Clone, Copy)]
struct Link {
    node: u32,
    next: u32,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// Places in `targets`, one more than the number; 0 where there is none.
    places: Vec<u32>,
    targets: Vec<Last>,
    links: Vec<Link>,
}

impl Graph {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.places.fill(0);
        self.targets.clear();
        self.links.clear();
    }

    /// Pieces.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The piece of a node.
    pub(super) fn piece(&self, node: u32) -> Piece {
        self.nodes[node as usize].piece
    }

    /// The nodes that depend on nothing, in the order of the batch.
    pub(super) fn ready(&self) -> impl Iterator<Item = u32> + use<'_> {
        (0..self.nodes.len() as u32).filter(|node| self.nodes[*node as usize].missing == 0)
    }

    /// The first node of a call.
    pub(super) fn node_of(&self, call: usize) -> u32 {
        self.nodes.partition_point(|node| node.piece.call < call) as u32
    }

    /// Adds the next piece in the order of the batch.
    pub(super) fn add(&mut self, piece: Piece, accesses: &[Access]) {
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { piece, missing: 0, edges: NONE });
        for Access { target, mode } in accesses {
            let number = self.last_of(*target, *mode);
            let mut last = self.targets[number];
            if last.members != NONE && !last.mode.goes_with(*mode) {
                last = Last { members: NONE, before: last.members, mode: *mode, ..last };
            }
            last.members = self.link(node, last.members);
            self.targets[number] = last;
            let mut member = last.before;
            while let Some(Link { node: of, next }) = self.links.get(member as usize).copied() {
                let edges = self.nodes[of as usize].edges;
                self.nodes[of as usize].edges = self.link(node, edges);
                self.nodes[node as usize].missing += 1;
                member = next;
            }
        }
    }

    fn link(&mut self, node: u32, next: u32) -> u32 {
        self.links.push(Link { node, next });
        self.links.len() as u32 - 1
    }

    /// The number of a target.
    fn last_of(&mut self, target: Target, mode: Mode) -> usize {
        if (self.targets.len() + 1) * 2 > self.places.len() {
            self.grow();
        }
        let place = self.place(target);
        if let Some(number) = self.places[place].checked_sub(1) {
            return number as usize;
        }
        self.targets.push(Last { target, mode, members: NONE, before: NONE });
        self.places[place] = self.targets.len() as u32;
        self.targets.len() - 1
    }

    /// Where a target is, or would be.
    fn place(&self, target: Target) -> usize {
        let mask = self.places.len() - 1;
        let mut place = target.mixed() as usize & mask;
        while let Some(number) = self.places[place].checked_sub(1)
            && self.targets[number as usize].target != target
        {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        self.places = vec![0; (self.places.len() * 2).max(64)];
        for number in 0..self.targets.len() {
            let place = self.place(self.targets[number].target);
            self.places[place] = number as u32 + 1;
        }
    }

    /// A piece has ended: `ready` gets those that waited for nothing else.
    pub(super) fn end(&mut self, node: u32, mut ready: impl FnMut(u32)) {
        let mut edge = self.nodes[node as usize].edges;
        while let Some(Link { node, next }) = self.links.get(edge as usize).copied() {
            let missing = &mut self.nodes[node as usize].missing;
            *missing -= 1;
            if *missing == 0 {
                ready(node);
            }
            edge = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cut::Of;
    use super::*;

    #[test]
    fn readers_wait_for_the_writer_before_and_the_next_writer_for_them() {
        let mut graph = Graph::default();
        let modes = [Mode::Write, Mode::Read, Mode::Read, Mode::Write, Mode::Read];
        for (call, mode) in modes.into_iter().enumerate() {
            let accesses = [Access { target: Target(7), mode }];
            graph.add(Piece { call, of: Of::Whole }, &accesses);
        }
        graph.add(Piece { call: 5, of: Of::Whole }, &[]);
        assert_eq!(graph.ready().collect::<Vec<_>>(), [0, 5]);
        let mut end = |node| {
            let mut ready = Vec::new();
            graph.end(node, |node| ready.push(node));
            ready.sort_unstable();
            ready
        };
        assert_eq!(end(0), [1, 2]);
        assert_eq!((end(2), end(1)), (vec![], vec![3]));
        assert_eq!(end(3), [4]);
    }
}
