import CCurl
import ConfluxVocabulary

/// Why a request got no answer from etcd.
struct TransferFailure: Error {
    /// Whether the member may have received the request.
    var mayBeSent: Bool
    /// Whether the certificate of one side was refused.
    var isDenied = false
    /// Whether the answer exceeded the size limit.
    var isTooLarge = false
    /// What happened, for people.
    var message: String
}

/// A member's answer.
struct EtcdReply {
    /// The gRPC status; 0 is success.
    var status: Int
    var message: String
    var body: Bytes

    /// Whether the member serves authenticated users only.
    var wantsUser: Bool { status == 3 && message.contains("user name is empty") }
}

/// Sends requests to members of etcd, one at a time: gRPC over HTTP/2, with libcurl. It keeps connections
/// open.
///
/// Confined to one thread at a time.
final class EtcdTransfer {
    /// The most bytes of an answer. *At the bound* the transfer ends.
    static let answerBytesMax = 64 << 20

    private var handle: UnsafeMutableRawPointer
    /// The handle that owns the connections.
    private var multi: UnsafeMutableRawPointer
    private let sink = TransferSink()
    private let security: EtcdSecurity?
    /// Ends the transfers; nil if nobody does.
    private let calls: EtcdCalls?
    private var isSecure: Bool { security != nil }
    /// The members whose last answer came over a connection that is probably still open.
    private var connected: Set<String> = []
    /// libcurl 7.87 and 7.88 fail if a request with prior knowledge of HTTP/2 reuses a connection that speaks
    /// HTTP/2 already. A request that asks for an upgrade reuses such a connection without trouble.
    private let asksForUpgrade = (0x07_57_00..<0x08_00_00).contains(conflux_curl_version())

    /// - Throws: If a TLS file can't be used, or the system has no memory.
    init(
        _ security: EtcdSecurity?, endedBy calls: EtcdCalls? = nil
    ) throws(TransferFailure) {
        guard Self.isReady, let (handle, multi) = Self.makeHandles() else {
            throw TransferFailure(mayBeSent: false, message: "libcurl could not start")
        }
        self.handle = handle
        self.multi = multi
        self.security = security
        self.calls = calls
        prepare()
    }

    private static func makeHandles() -> (UnsafeMutableRawPointer, UnsafeMutableRawPointer)? {
        guard let handle = curl_easy_init() else { return nil }
        guard let multi = curl_multi_init() else {
            curl_easy_cleanup(handle)
            return nil
        }
        return (handle, multi)
    }

    private func prepare() {
        let context = Unmanaged.passUnretained(sink).toOpaque()
        conflux_curl_set_function(handle, CURLOPT_WRITEFUNCTION, TransferSink.takeBody)
        conflux_curl_set_pointer(handle, CURLOPT_WRITEDATA, context)
        conflux_curl_set_function(handle, CURLOPT_HEADERFUNCTION, TransferSink.takeHeader)
        conflux_curl_set_pointer(handle, CURLOPT_HEADERDATA, context)
        conflux_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, sink.error)
        Self.prepare(handle, security)
    }

    /// Drops all connections after a failure: libcurl would reuse an open one that may be unusable.
    private func renew() {
        connected = []
        // If there is no memory for a new one, keep the old one.
        guard let next = Self.makeHandles() else { return }
        conflux_curl_end(handle, multi)
        (handle, multi) = next
        prepare()
    }

    deinit {
        conflux_curl_end(handle, multi)
    }

    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Sets the options that all requests to etcd have in common.
    static func prepare(_ handle: UnsafeMutableRawPointer, _ security: EtcdSecurity?) {
        conflux_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        conflux_curl_set_long(handle, CURLOPT_TCP_KEEPALIVE, 1)
        // Don't wait for a pending name lookup after the deadline.
        conflux_curl_set_quick_exit(handle)
        // Use no proxy, whatever the environment says.
        conflux_curl_set_text(handle, CURLOPT_NOPROXY, "*")
        guard let security else { return }
        if let file = security.authorityFile {
            conflux_curl_set_text(handle, CURLOPT_CAINFO, file)
            // Otherwise the system's authorities would be trusted as well.
            conflux_curl_set_pointer(handle, CURLOPT_CAPATH, nil)
        }
        // Don't prompt for the password of an encrypted key.
        conflux_curl_set_text(handle, CURLOPT_KEYPASSWD, "")
        if let file = security.certificateFile {
            conflux_curl_set_text(handle, CURLOPT_SSLCERT, file)
        }
        if let file = security.keyFile { conflux_curl_set_text(handle, CURLOPT_SSLKEY, file) }
    }

    /// Asks a member.
    ///
    /// - Parameters:
    ///   - method: For example `/etcdserverpb.KV/Txn`.
    ///   - member: `host:port`.
    ///   - message: The Protocol Buffers message.
    ///   - token: The user's token; nil without a user.
    ///   - limit: The time limit.
    /// - Returns: The member's answer.
    /// - Throws: ``TransferFailure``.
    func ask(
        _ method: String, of member: String, _ message: [UInt8], token: String?,
        within limit: Duration
    ) throws(TransferFailure) -> EtcdReply {
        sink.begin()
        var headers: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(headers) }
        let lines = ["content-type: application/grpc", "te: trailers", "Expect:"]
        for line in lines + (token.map { ["token: \($0)"] } ?? []) {
            headers = curl_slist_append(headers, line)
        }
        let milliseconds = max(1, Int(limit / .milliseconds(1)))
        let scheme = isSecure ? "https" : "http"
        conflux_curl_set_text(handle, CURLOPT_URL, "\(scheme)://\(member)\(method)")
        conflux_curl_set_pointer(handle, CURLOPT_HTTPHEADER, headers)
        conflux_curl_set_long(handle, CURLOPT_TIMEOUT_MS, milliseconds)
        conflux_curl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, max(1, milliseconds / 2))
        conflux_curl_set_long(handle, CURLOPT_HTTP_VERSION, version(for: member))
        let frame = GRPCFrame.encode(message)
        let code = frame.withUnsafeBytes { bytes in
            conflux_curl_set_body(handle, bytes.baseAddress, bytes.count)
            return conflux_curl_perform(handle, multi, calls?.flag)
        }
        return try reply(code, from: member)
    }

    private func version(for member: String) -> Int {
        if isSecure { return CURL_HTTP_VERSION_2TLS }
        return asksForUpgrade && connected.contains(member)
            ? CURL_HTTP_VERSION_2_0 : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
    }

    private func reply(
        _ code: CURLcode, from member: String
    ) throws(TransferFailure) -> EtcdReply {
        // If an open connection ends without an answer, libcurl silently sends the request again over another
        // one. So whatever the outcome of the second request, the first one may have been received.
        let stood = connected.contains(member)
        guard code == CURLE_OK else {
            var failure = TransferFailure(
                code, words: sink.words(of: code), isTooLarge: sink.isTooLarge,
                isConnected: conflux_curl_double(handle, CURLINFO_PRETRANSFER_TIME) > 0)
            failure.mayBeSent = failure.mayBeSent || stood
            renew()
            throw failure
        }
        guard conflux_curl_long(handle, CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_2_0 else {
            // The connection had ended, and the new one was asked for an upgrade: etcd ignores such a
            // request.
            renew()
            throw TransferFailure(
                mayBeSent: stood,
                message: stood
                    ? "the connection had ended" : "it does not speak HTTP/2, as etcd does")
        }
        guard let status = sink.status else {
            throw TransferFailure(
                mayBeSent: true,
                message: "it answers with HTTP's status "
                    + "\(conflux_curl_long(handle, CURLINFO_RESPONSE_CODE)), and not as etcd does")
        }
        connected.insert(member)
        let body = status == 0 ? GRPCFrame.decode(sink.body) : []
        guard let body else {
            throw TransferFailure(mayBeSent: true, message: "its answer was cut off")
        }
        return EtcdReply(status: status, message: sink.message, body: body)
    }
}

extension TransferFailure {
    init(_ code: CURLcode, words: String, isTooLarge: Bool, isConnected: Bool) {
        let unsent = [
            CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR,
        ]
        let denying = [
            CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_ISSUER_ERROR,
        ]
        // A server that requires a certificate reports that after the handshake, as a TLS alert.
        let isAlert = words.contains("alert") && words.contains("certificate")
        let isForeign = [CURLE_HTTP2, CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL]
            .contains(code)
        isDenied = denying.contains(code) || isAlert
        mayBeSent = isConnected && !unsent.contains(code) && !isDenied
        self.isTooLarge = isTooLarge
        message = isForeign ? "it does not speak etcd's protocol, or has ended (\(words))" : words
    }
}

/// Receives the data of a transfer.
final class TransferSink {
    private(set) var body: [UInt8] = []
    /// The gRPC status; nil until it has arrived.
    private(set) var status: Int?
    private(set) var message = ""
    private(set) var isTooLarge = false
    /// The buffer for libcurl's error message.
    let error = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    deinit {
        error.deallocate()
    }

    func begin() {
        body.removeAll(keepingCapacity: body.capacity <= 1 << 20)
        status = nil
        message = ""
        isTooLarge = false
        error.pointee = 0
    }

    func words(of code: CURLcode) -> String {
        let words = String(shownCString: error)
        return words.isEmpty ? String(shownCString: curl_easy_strerror(code)) : words
    }

    /// Removes the bytes that were decoded.
    func drop(_ count: Int) {
        body.removeFirst(count)
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard body.count + bytes.count <= EtcdTransfer.answerBytesMax else {
            isTooLarge = true
            return 0
        }
        body.append(contentsOf: bytes)
        return bytes.count
    }

    private func takeLine(_ line: String) {
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2 else { return }
        let value = parts[1].trimmed
        switch parts[0].lowercased() {
        case "grpc-status": status = Int(value)
        case "grpc-message": message = value.percentDecoded.printable
        default: break
        }
    }

    static let takeBody: conflux_curl_data = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let sink = Unmanaged<TransferSink>.fromOpaque(context).takeUnretainedValue()
        return sink.take(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }

    static let takeHeader: conflux_curl_data = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let sink = Unmanaged<TransferSink>.fromOpaque(context).takeUnretainedValue()
        let raw = UnsafeRawBufferPointer(start: bytes, count: size * count)
        // The headers that matter are ASCII.
        if let line = try? String(utf8: raw) { sink.takeLine(line) }
        return size * count
    }
}

extension Substring {
    /// The text without surrounding white space.
    fileprivate var trimmed: String {
        var text = drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}

extension String {
    /// The first 256 characters, without terminal control characters.
    fileprivate var printable: String {
        let shown = unicodeScalars.filter { $0.properties.generalCategory != .control }
        return String(String.UnicodeScalarView(shown.prefix(256)))
    }

    /// Decodes gRPC's encoding of messages: `%` and two hexadecimal digits for a byte.
    fileprivate var percentDecoded: String {
        var bytes: [UInt8] = []
        var rest = Array(utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let text = try? String(utf8: digits), let decoded = UInt8(text, radix: 16)
            {
                bytes.append(decoded)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(shown: bytes)
    }
}
