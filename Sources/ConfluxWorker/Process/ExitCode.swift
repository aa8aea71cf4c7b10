/// The exit code of a process.
///
/// Up to 78, these are the numbers of `sysexits.h`. Others begin at 80. They are stable: scripts depend
/// on them. If a stream of actions failed in several ways, the first failing line decides.
package enum ExitCode: Int32, Error, Sendable, CaseIterable {
    /// Everything asked for was done.
    case success = 0
    /// The command line can't be understood.
    case usage = 64
    /// An action, or a line of input, is not valid. It was not sent.
    case invalidInput = 65
    /// An input file can't be read.
    case noInput = 66
    /// No sequencer answered, or the connection ended before an action was sent.
    case unreachable = 69
    /// The program itself failed.
    case failed = 70
    /// The port, the folder or the journal is not available.
    case cannotCreate = 73
    /// The log failed, so the sequencer stopped; or the output can't be written.
    case logFailed = 74
    /// The keys don't fit, or the key does not permit the request: see the sequencer's file of
    /// authorised keys.
    case notPermitted = 77
    /// An action or another request was rejected: it is not in the log.
    case rejected = 80
    /// An action was refused: it is in the log, and changed nothing.
    case refused = 81
    /// It is unknown whether an action is in the log, or what it did.
    case unknownOutcome = 82
    /// No answer came in time.
    case timedOut = 83
    /// No live node hosts the store, or there is nothing at the place.
    case notFound = 84
    /// The sequencer refused the node: its name is taken, or its version is another one.
    case nodeRefused = 85
    /// Another sequencer has taken over the log.
    case superseded = 86
    /// An action is in the log, and a store stopped before it: nobody has applied it yet.
    case storeStopped = 87
    /// An action is in the log, and concerned no store.
    case concernedNobody = 88
    /// SIGINT, before everything was done.
    case interrupted = 130
    /// Nobody reads the output any more.
    case outputClosed = 141
    /// SIGTERM, before everything was done.
    case terminated = 143

    /// The meaning of the number, for the help.
    package var summary: String {
        switch self {
        case .success: "done"
        case .usage: "the command line can't be understood"
        case .invalidInput: "an action or a line of input is not valid; it was not sent"
        case .noInput: "the input can't be read"
        case .unreachable: "no sequencer answered"
        case .failed: "the program itself failed"
        case .cannotCreate: "the port, the folder or the journal is in use or can't be made"
        case .logFailed: "the log failed, or the output can't be written"
        case .notPermitted: "not admitted, not permitted, or the server has another key"
        case .rejected: "rejected: the action is not in the log"
        case .refused: "refused: an action is in the log and changed nothing"
        case .unknownOutcome: "the outcome of an action can't be known"
        case .timedOut: "no answer came in time"
        case .notFound: "no live node hosts it, or nothing is at the path"
        case .nodeRefused: "the sequencer refused the node, as when its name is taken"
        case .superseded: "another sequencer has taken over the log"
        case .storeStopped: "an action is in the log, and a store stopped before it"
        case .concernedNobody: "an action is in the log, but no store took it"
        case .interrupted: "interrupted by SIGINT before all was done, or not confirmed"
        case .outputClosed: "nobody reads the output any more"
        case .terminated: "ended by SIGTERM before all was done"
        }
    }
}
