use nvcaracal::*;
use std::time::*;
const A: Table<u64, [u64; 4]> = Table::hash("a");
plain! { struct Add { key: u64, other: u64, by: u64 } }
impl Procedure for Add {
    const NAME: &'static str = "add";
    type Output = u64;
    fn write_set(&self, s: &mut WriteSet) { s.insert(A, self.key); s.insert(A, self.other); }
    fn run(&self, tx: &mut Transaction) -> std::result::Result<u64, Stop> {
        let mut a = tx.get(A, self.key)?.unwrap_or([0; 4]);
        let mut b = tx.get(A, self.other)?.unwrap_or([0; 4]);
        a[0] += self.by; b[0] += self.by;
        tx.insert(A, self.key, &a)?;
        tx.insert(A, self.other, &b)?;
        Ok(a[0])
    }
}
fn main() {
    let spec = std::env::args().nth(1).unwrap();
    let workers = std::env::args().nth(2).unwrap().parse().unwrap();
    let n: u64 = std::env::args().nth(3).map_or(200, |n| n.parse().unwrap());
    let db = Database::options().table(A).procedure::<Add>().workers(workers).open_device(spec.parse().unwrap()).unwrap();
    let add = |i: u64| Add { key: i.wrapping_mul(0x9e3779b97f4a7c15) >> 46, other: i.wrapping_mul(0xc2b2ae3d27d4eb4f) >> 46, by: 1 };
    let ts: Vec<_> = (0..300_000).map(|i| db.submit(add(i)).unwrap()).collect();
    for t in ts { t.wait().unwrap(); }
    let mut lat: Vec<_> = (0..n * 10).map(|i| { let t = Instant::now(); db.call(add(i)).unwrap(); t.elapsed() }).collect();
    lat.sort();
    println!("{spec} w{workers}: 1 thread call p50 {:?} p99 {:?}", lat[lat.len() / 2], lat[lat.len() * 99 / 100]);
    let e0 = db.stats().epochs;
    let mut lat: Vec<_> = (0..n).map(|_| { let t = Instant::now(); db.get(A, 1).unwrap(); t.elapsed() }).collect();
    lat.sort();
    println!("   get p50 {:?}", lat[lat.len() / 2]);
    let t = Instant::now();
    std::thread::scope(|s| for w in 0..8u64 { let db = &db; s.spawn(move || for round in 0..n {
        let ts: Vec<_> = (0..1000).map(|i| db.submit(add((w * n + round) * 1000 + i)).unwrap()).collect();
        for t in ts { t.wait().unwrap(); }
    }); });
    let dt = t.elapsed();
    let st = db.stats();
    println!("   8x1000: {:.0} calls/s, {:.0} calls/epoch, epoch latency p50 {:?} p99 {:?}", (8 * n * 1000) as f64 / dt.as_secs_f64(), (8 * n * 1000) as f64 / (st.epochs - e0) as f64, st.latency_p50, st.latency_p99);
    let names = ["log","decl","ins","gc","evict","app","exec","rem","ckpt"];
    println!("   last epoch: {:?} total {}us, {} calls", st.last_epoch.phase_ns.iter().zip(names).map(|(n, p)| format!("{p} {}", n / 1000)).collect::<Vec<_>>(), st.last_epoch.total_ns / 1000, st.last_epoch.work.committed);
    let t = Instant::now();
    for _ in 0..n / 10 {
        let mut b = db.batch();
        for i in 0..20_000 { b.add(&add(i)).unwrap(); }
        b.submit().unwrap().wait();
    }
    println!("   batches of 20000, one at a time: {:.0} calls/s", (n / 10 * 20_000) as f64 / t.elapsed().as_secs_f64());
    db.close().unwrap();
}
