import Testing

/// The programs themselves, on real sockets and files.
///
/// Tests that keep the machine busy follow each other; those of ``BadInputTests`` mostly wait, and
/// run at once.
@Suite(.serialized) enum ProcessTests {}
