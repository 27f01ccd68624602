//! The crash lab, and what fuzzes files, at the size of every run of the tests.

mod crash;
mod damage;
mod disk;
mod fuzz;
mod indexes;
mod minimise;
mod product;
