import CZeroMQ
import ConfluxArguments
import ConfluxProtocol
import ConfluxSequencer
import ConfluxSystem
import ConfluxWorker
import ConfluxZeroMQ
import Foundation

/// Who may use the gateway: its own key, and the file of authorised keys.
struct GatewayKeys: Sendable {
    let own: CurveKeyPair
    var authorized: AuthorizedKeys

    /// Reads the keys that the command line names; nil if it names none.
    ///
    /// - Parameters:
    ///   - secret: The file of the own secret key.
    ///   - authorized: The file of the authorised keys.
    /// - Throws: Why they can't be used.
    init?(secret: String?, authorized: String?) throws(CommandFailure) {
        guard let authorized else { return nil }
        guard let secret else {
            throw CommandFailure(
                .usage, code: "usage",
                "--authorized needs --curve-secret: who this process is, for those who connect.")
        }
        own = try failing { () throws(KeyFileError) in try KeyFile.readPair(secret) }
        self.authorized = try failing { () throws(AuthorizedKeysError) in
            try AuthorizedKeys.read(authorized)
        }
    }

    /// Whose request it is.
    ///
    /// - Parameter userID: What ``Authenticator`` said of the connection: a public key in Z85.
    /// - Returns: nil if the key is no longer authorised.
    func principal(of userID: String?) -> Principal? {
        userID.flatMap { CurvePublicKey($0) }.flatMap { authorized[$0] }
    }
}

/// The end of libzmq's authentication ([ZAP](https://rfc.zeromq.org/spec/27/)): libzmq asks it about the key of each
/// connection. It admits authorised keys, and names them by their text.
struct Authenticator {
    /// What a connection is for.
    enum Domain: Hashable {
        /// To subscribe at one of the publishers. libzmq applies subscriptions itself, so a key must be allowed to read
        /// everything that is published there.
        case publish(Int)
        /// To ask. Each request is examined.
        case ask

        private static let publishPrefix = "publish-"

        /// What libzmq has of it.
        var text: String {
            switch self {
            case .publish(let index): "\(Self.publishPrefix)\(index)"
            case .ask: "ask"
            }
        }

        /// - Parameter text: What libzmq has of it; nil is returned for anything else.
        init?(_ text: String) {
            if text == Domain.ask.text {
                self = .ask
            } else if text.hasPrefix(Self.publishPrefix),
                let index = Int(text.dropFirst(Self.publishPrefix.count))
            {
                self = .publish(index)
            } else {
                return nil
            }
        }
    }

    private let socket: LibrarySocket
    /// Whether who has the own secret key may subscribe: another relay.
    private let admitsOwnKey: Bool
    /// The keys whose denials were reported, and where they were denied.
    private var reported: Set<Denial> = []

    private struct Denial: Hashable {
        let key: CurvePublicKey
        let publisher: Int
    }

    /// - Throws: If another part of this process authenticates in this context already.
    init(in context: LibraryContext, admitsOwnKey: Bool = false) throws(LibraryFailure) {
        self.admitsOwnKey = admitsOwnKey
        socket = try LibrarySocket(ZMQ_REP, in: context)
        _ = try socket.bind("inproc://zeromq.zap.01")
    }

    var pointer: UnsafeMutableRawPointer { socket.pointer }

    /// Answers what libzmq asks.
    ///
    /// - Parameters:
    ///   - keys: The keys.
    ///   - mayRead: Whether rights allow to read everything that a publisher publishes.
    ///   - report: Gets the principal whose key is authorised, and may not subscribe at a publisher; once for each.
    mutating func work(
        _ keys: GatewayKeys, mayRead: (Rights, Int) -> Bool, report: (Principal, Int) -> Void
    ) {
        while let request = socket.receive(partsMax: 16, bytesMax: 4_096) {
            let parts = request.parts
            // version, request, domain, address, routing id, mechanism, key
            let isCurve =
                parts.count == 7 && parts[5] == Array("CURVE".utf8) && parts[6].count == 32
            let key = isCurve ? CurvePublicKey(bytes: parts[6]) : nil
            let principal = key.flatMap { keys.authorized[$0] }
            let domain = parts.count > 2 ? Domain(String(shown: parts[2])) : nil
            let isOwn = admitsOwnKey && key == keys.own.publicKey
            let isKnown =
                switch domain {
                case .publish(let index):
                    isOwn || principal.map { mayRead($0.rights, index) } == true
                case .ask: principal != nil
                case nil: false
                }
            if !isKnown, let key, let principal, case .publish(let index) = domain,
                reported.insert(Denial(key: key, publisher: index)).inserted
            {
                report(principal, index)
            }
            socket.send([
                Array("1.0".utf8), parts.count > 1 ? parts[1] : [],
                Array((isKnown ? "200" : "400").utf8), [],
                Array((isKnown ? key?.description ?? "" : "").utf8), [],
            ])
        }
    }

    /// Makes a socket admit authorised keys only.
    static func secure(
        _ socket: LibrarySocket, for domain: Domain, with keys: GatewayKeys
    ) throws(LibraryFailure) {
        try socket.set(ZMQ_CURVE_SERVER, Int32(1))
        try socket.set(ZMQ_ZAP_DOMAIN, Array(domain.text.utf8))
        try socket.set(secretOf: keys.own)
    }
}

extension LibrarySocket {
    /// Sets the secret key, which is not copied.
    func set(secretOf keys: CurveKeyPair) throws(LibraryFailure) {
        let failure = keys.withSecret { secret -> LibraryFailure? in
            do throws(LibraryFailure) {
                try set(
                    ZMQ_CURVE_SECRETKEY, bytes: UnsafeRawBufferPointer(start: secret, count: 32))
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }
}

extension CommandEnvironment {
    /// Reads the authorised keys again on SIGHUP, and says so.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - take: Gets the keys. It is not called if they can't be used.
    func rereadKeys(_ path: String, take: @escaping @Sendable (AuthorizedKeys) -> Void) {
        Signals.handle(SIGHUP) {
            do throws(AuthorizedKeysError) {
                let keys = try AuthorizedKeys.read(path)
                take(keys)
                announce(
                    "authorized", ["count": keys.count],
                    text: "authorised keys: \(keys.count), read again")
            } catch {
                diagnostics.report(
                    CommandFailure(
                        .noInput, code: "authorizedKeys",
                        error.message
                            + " The former keys stay authorised; correct the file, and send SIGHUP again."
                    ))
            }
        }
    }
}

extension AuthorizedKeysError: CommandError {
    package var failure: CommandFailure {
        CommandFailure(.noInput, code: "authorizedKeys", message)
    }
}

extension LibraryFailure: CommandError {
    /// The failure of a command that an address is refused to.
    var failure: CommandFailure {
        switch number {
        case EADDRINUSE:
            CommandFailure(
                .cannotCreate, code: "addressInUse",
                "Another program uses the address: \(message). End that program, or choose another address."
            )
        case EINVAL, EPROTONOSUPPORT, ENODEV, EADDRNOTAVAIL, ENOENT:
            CommandFailure(
                .usage, code: "invalidAddress",
                "The address can't be used: \(message). Give tcp://HOST:PORT with an address of this machine, or ipc://PATH."
            )
        default: CommandFailure(.failed, "\(message).")
        }
    }
}

extension AuthorizedKeys {
    /// Reads a file of authorised keys.
    ///
    /// - Parameter path: The file.
    /// - Returns: The keys.
    /// - Throws: Why it can't be used.
    package static func read(_ path: String) throws(AuthorizedKeysError) -> AuthorizedKeys {
        let bytes: [UInt8]
        do throws(SystemFailure) {
            // One byte beyond the limit shows that the file is too large.
            bytes = try InputFile(path).read(upTo: AuthorizedKeys.textBytesMax + 1)
        } catch {
            let reason = error.reason(advice: "Give a file that there is.")
            throw AuthorizedKeysError("The authorised keys in \(path) can't be read: \(reason)")
        }
        do throws(AuthorizedKeys.Fault) {
            return try AuthorizedKeys(utf8: bytes)
        } catch {
            throw AuthorizedKeysError("\(path), line \(error.line): \(error.message).")
        }
    }
}
