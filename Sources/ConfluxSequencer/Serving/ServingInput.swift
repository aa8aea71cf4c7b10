import ConfluxVocabulary

/// A message from another thread to the serving thread.
// Some cases are indirect, since they are large, and an input is copied on its way.
enum ServingInput: Sendable {
    /// An answer from the log's thread.
    case log(LogThread.Answer)
    /// An answer from the reading thread.
    indirect case read(ReadThread.Answer)
    /// The outcome of a look at the log while another sequencer may serve, and when the look began.
    indirect case followed(LogLook, since: Duration)
    /// The serving sequencer may have written something.
    case hinted
    /// What the heartbeat thread has found about a term.
    case news(HeartbeatNews, Epoch)
    /// End the term cleanly.
    case stop
    /// Admit only these keys from now on.
    case authorize(AuthorizedKeys)
    /// Read the authorised keys again.
    case reload
    /// The authorised keys were read again.
    case reloaded(KeyReloads.Outcome)
    /// Pass this on to the thread that owns the log.
    case probe(@Sendable () -> Void)
}
