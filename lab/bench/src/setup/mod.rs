//! What to run, and how: jobs, settings, designs.

mod design;
mod job;
mod settings;

pub use design::Design;
pub use job::Job;
pub use settings::Settings;
