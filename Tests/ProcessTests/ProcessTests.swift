import Testing

/// The programs themselves, on real sockets and files.
///
/// Tests that keep the machine busy run one after the other. Those of ``BadInputTests`` mostly wait, and
/// run at the same time.
@Suite(.serialized) enum ProcessTests {}
