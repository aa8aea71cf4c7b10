import ConfluxSystem

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Why a call on a socket, an endpoint or a thread failed.
///
/// Conditions of normal operation are results, not errors: nothing to receive, a full queue, a peer
/// that is gone.
public struct ZeroMQError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of failure it is. Programs use this to decide what to do.
    public enum Code: String, Sendable, Hashable {
        /// Another socket is bound to the address.
        case addressInUse
        /// No interface of this machine has the address.
        case addressNotAvailable
        /// The text is not an endpoint, or the endpoint can't be used in this way.
        case invalidEndpoint
        /// A setting lies outside its bounds.
        case invalidSetting
        /// The endpoint can't be reached at the moment.
        case unreachable
        /// The system does not permit it.
        case permissionDenied
        /// There are no descriptors left, or the poller holds no more sockets.
        case tooManyOpen
        /// There is not enough memory.
        case outOfMemory
        /// The socket is closed.
        case closed
        /// A thread could not be started.
        case threadNotStarted
        /// Any other failure; the message has the system's words.
        case failed
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened, and what to do about it.
    public let message: String
    /// The system's `errno`; 0 if the failure was found without a call of the system.
    public let systemNumber: Int32

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: What kind of failure it is.
    ///   - message: What happened, and what to do about it.
    ///   - systemNumber: The `errno`, or 0.
    public init(_ code: Code, _ message: String, systemNumber: Int32 = 0) {
        self.code = code
        self.message = message
        self.systemNumber = systemNumber
    }

    /// The message.
    public var description: String { message }

    static let socketClosed = ZeroMQError(
        .closed, "The socket is closed. Open a new one to go on.")

    /// The error for a failed call of the system.
    ///
    /// - Parameters:
    ///   - number: The call's `errno`.
    ///   - attempt: What was tried, as the beginning of a sentence: "Binding to …".
    ///   - path: The file that it concerns; nil if there is none.
    /// - Returns: The error. Its message has the system's words and advice.
    static func system(
        _ number: Int32, _ attempt: String, at path: String? = nil
    ) -> ZeroMQError {
        let failure = path.map { SystemFailure(number, at: $0) } ?? SystemFailure(number)
        let (code, advice) = meaning(of: failure, isFile: path != nil)
        return ZeroMQError(
            code, "\(attempt) failed: \(failure.words). \(advice)", systemNumber: number)
    }

    private static func meaning(of failure: SystemFailure, isFile: Bool) -> (Code, String) {
        if let trouble = failure.trouble, let code = code(of: trouble, isFile: isFile) {
            return (code, trouble.advice)
        }
        return switch failure.number {
        case EADDRINUSE:
            (.addressInUse, "End the process that holds the address, or choose another port.")
        case EADDRNOTAVAIL, ENODEV:
            (.addressNotAvailable, "Give the IP address of an interface of this machine, or *.")
        case EINVAL:
            (.invalidEndpoint, "Check the address: tcp://host:port or ipc:///path.")
        case ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ENETDOWN:
            (.unreachable, "Check the address, and that the other side is running.")
        case EACCES, EPERM:
            (.permissionDenied, "Choose a port above 1023.")
        case ENOSPC:
            (.tooManyOpen, "Raise fs.epoll.max_user_watches, or close sockets.")
        case ENOMEM, ENOBUFS:
            (.outOfMemory, "Free memory, or lower the queue and message limits.")
        case ENOTSOCK:
            (.closed, "Open a new socket to go on.")
        case ENOENT:
            (.unreachable, "The folder of the ipc path must exist.")
        default:
            (.failed, "Try again.")
        }
    }

    /// nil if the number means something else for a socket than for a file.
    private static func code(of trouble: SystemTrouble, isFile: Bool) -> Code? {
        switch trouble {
        case .tooManyOpenFiles, .tooManyFilesOfSystem: .tooManyOpen
        case .notPermitted, .readOnly: isFile ? .permissionDenied : nil
        case .noMemory: nil
        default: isFile ? .unreachable : nil
        }
    }
}
