import ConfluxProtocol
import ConfluxSequencer
import ConfluxSystem
import ConfluxWorker
import ConfluxZeroMQ

/// Who may use the gateway: its own key, and the file of authorised keys.
struct GatewayKeys: Sendable {
    let own: CurveKeyPair
    var authorized: AuthorizedKeys

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
    enum Domain: String {
        /// To subscribe. libzmq applies subscriptions itself, so a key must be allowed to read everything that is published.
        case publish
        /// To ask. Each request is examined.
        case ask
    }

    private let socket: LibrarySocket
    /// The keys whose denials were reported.
    private var reported: Set<CurvePublicKey> = []

    /// - Throws: If another part of this process authenticates in this context already.
    init(in context: LibraryContext) throws(LibraryFailure) {
        socket = try LibrarySocket(ZMQ.reply, in: context)
        _ = try socket.bind("inproc://zeromq.zap.01")
    }

    var pointer: UnsafeMutableRawPointer { socket.pointer }

    /// Answers what libzmq asks.
    ///
    /// - Parameters:
    ///   - keys: The keys.
    ///   - stores: The stores that are published.
    ///   - report: Gets the principal whose key is authorised, and may not subscribe; once for each.
    mutating func work(_ keys: GatewayKeys, _ stores: [StoreName], report: (Principal) -> Void) {
        while let request = socket.receive(partsMax: 16, bytesMax: 4_096) {
            let parts = request.parts
            // version, request, domain, address, routing id, mechanism, key
            let isCurve =
                parts.count == 7 && parts[5] == Array("CURVE".utf8) && parts[6].count == 32
            let key = isCurve ? CurvePublicKey(bytes: parts[6]) : nil
            let principal = key.flatMap { keys.authorized[$0] }
            let isPublishing = parts.count > 2 && parts[2] == Array(Domain.publish.rawValue.utf8)
            let mayRead = stores.allSatisfy { store in
                principal?.rights.allowReading(.store(store)) == true
            }
            let isKnown = principal != nil && (!isPublishing || mayRead)
            if let key, let principal, !isKnown, reported.insert(key).inserted { report(principal) }
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
        try socket.set(ZMQ.curveServer, Int32(1))
        try socket.set(ZMQ.zapDomain, Array(domain.rawValue.utf8))
        let failure = keys.own.withSecret { secret -> LibraryFailure? in
            do throws(LibraryFailure) {
                try socket.set(
                    ZMQ.curveSecretKey, bytes: UnsafeRawBufferPointer(start: secret, count: 32))
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
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
