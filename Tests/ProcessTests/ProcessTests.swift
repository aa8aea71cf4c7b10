import Testing

/// The programs themselves, on real sockets and files.
///
/// They mostly wait, so `script/test` runs as many at the same time as there are processors. What keeps the machine busy
/// by itself is serialized.
enum ProcessTests {}
