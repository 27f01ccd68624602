//! The guide's code, as tests: `docs/guide/`.

macro_rules! pages {
    ($($page:ident $file:literal)*) => { $(
        #[doc = include_str!(concat!("../../../docs/guide/", $file))]
        struct $page;
    )* };
}

pages! {
    Start "start.md"
    Model "model.md"
    Contention "contention.md"
    SchemaChanges "schema-changes.md"
    Deploying "deploying.md"
    Operating "operating.md"
    AsyncServer "async-server.md"
    Testing "testing.md"
    Sizing "sizing.md"
}
