//! Placeholder until devices land.
