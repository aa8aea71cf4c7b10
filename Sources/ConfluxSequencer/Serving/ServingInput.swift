import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// What the thread that serves is told by other threads.
enum ServingInput: Sendable {
    /// An answer of the log.
    case log(LogThread.Answer)
    /// What was read of the log for others.
    case read(ReadThread.Answer)
    /// The log was looked at, since that time, while another sequencer may serve.
    case followed(LogLook, since: Duration)
    /// The one that serves may have said something.
    case hinted
    /// What the thread that says who serves has found, of a tenure.
    case news(HeraldNews, Epoch)
    /// End the tenure cleanly.
    case stop
    /// Only these may connect.
    case authorize(AuthorizedKeys)
    /// Read again who may connect.
    case reload
    /// It was read.
    case reloaded(KeyReloads.Outcome)
    /// Pass this on to the thread that owns the log.
    case probe(@Sendable () -> Void)
}
