//! NewOrder, Payment and Delivery cut into pieces (CA 5.4), so that an engine may run what updates
//! contended rows apart from the rest. Answers and state are those of the whole procedures.
//!
//! | procedure | a piece for | what is its own besides | comes to |
//! |---|---|---|---|
//! | NewOrder | each line, on STOCK | the line in ORDER-LINE | amount, quantity left, brand |
//! | Payment | the warehouse | | its name |
//! | Payment | the district | the row of HISTORY, which has both names | |
//! | Delivery | each order, on CUSTOMER | its rows of NEW-ORDER, ORDER and ORDER-LINE | |
//!
//! A piece cannot give up. What a call names that may not be there is looked up before: items in
//! the full mix ([`NewOrder::sequences`]), customers and orders by the declarations.

mod delivery;
mod new_order;
mod payment;

pub(super) use delivery::Delivery;
pub(super) use new_order::NewOrder;
pub(super) use payment::Payment;
