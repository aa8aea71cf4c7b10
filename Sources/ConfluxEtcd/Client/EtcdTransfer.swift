import CCurl
import ConfluxVocabulary
import Foundation

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
    ) throws(EtcdFault) {
        guard Self.isReady, let (handle, multi) = Self.makeHandles() else {
            throw EtcdFault(mayHaveHappened: false, words: "libcurl could not start")
        }
        self.handle = handle
        self.multi = multi
        self.security = security
        self.calls = calls
        prepare()
    }

    static func makeHandles() -> (UnsafeMutableRawPointer, UnsafeMutableRawPointer)? {
        guard let handle = curl_easy_init() else { return nil }
        guard let multi = curl_multi_init() else {
            curl_easy_cleanup(handle)
            return nil
        }
        return (handle, multi)
    }

    private func prepare() {
        let context = Unmanaged.passUnretained(sink).toOpaque()
        conflux_curl_set_function(handle, CURLOPT_HEADERFUNCTION, TransferSink.takeHeader)
        conflux_curl_set_pointer(handle, CURLOPT_HEADERDATA, context)
        conflux_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, sink.error)
        Self.prepare(handle, sink, security)
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
    static func prepare(
        _ handle: UnsafeMutableRawPointer, _ sink: TransferSink, _ security: EtcdSecurity?
    ) {
        conflux_curl_set_function(handle, CURLOPT_WRITEFUNCTION, TransferSink.takeBody)
        conflux_curl_set_pointer(
            handle, CURLOPT_WRITEDATA, Unmanaged.passUnretained(sink).toOpaque())
        conflux_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        conflux_curl_set_long(handle, CURLOPT_TCP_KEEPALIVE, 1)
        // Don't wait for a pending name lookup after the deadline.
        conflux_curl_set_quick_exit(handle)
        // Use no proxy, whatever the environment says.
        conflux_curl_set_text(handle, CURLOPT_NOPROXY, "*")
        conflux_curl_set_long(
            handle, CURLOPT_HTTP_VERSION,
            security == nil ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_2TLS)
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

    /// Sets where a request goes, and how long it may take.
    ///
    /// - Returns: The request's headers, which the caller frees after it.
    static func address(
        _ handle: UnsafeMutableRawPointer, _ url: String, _ token: String?, within limit: Duration,
        connecting connectMax: Duration
    ) -> UnsafeMutablePointer<curl_slist>? {
        var headers: UnsafeMutablePointer<curl_slist>?
        let lines = ["content-type: application/grpc", "te: trailers", "Expect:"]
        for line in lines + (token.map { ["token: \($0)"] } ?? []) {
            headers = curl_slist_append(headers, line)
        }
        conflux_curl_set_text(handle, CURLOPT_URL, url)
        conflux_curl_set_pointer(handle, CURLOPT_HTTPHEADER, headers)
        for (option, time) in [
            (CURLOPT_TIMEOUT_MS, limit), (CURLOPT_CONNECTTIMEOUT_MS, connectMax),
        ] {
            conflux_curl_set_long(handle, option, max(1, Int(time / .milliseconds(1))))
        }
        return headers
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
    /// - Throws: ``EtcdFault``.
    func ask(
        _ method: String, of member: String, _ message: [UInt8], token: String?,
        within limit: Duration
    ) throws(EtcdFault) -> EtcdReply {
        sink.begin()
        let headers = Self.address(
            handle, "\(isSecure ? "https" : "http")://\(member)\(method)", token, within: limit,
            connecting: limit / 2)
        defer { curl_slist_free_all(headers) }
        if !isSecure {
            conflux_curl_set_long(
                handle, CURLOPT_HTTP_VERSION,
                asksForUpgrade && connected.contains(member)
                    ? CURL_HTTP_VERSION_2_0 : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
        }
        let frame = GRPCFrame.encode(message)
        let code = frame.withUnsafeBytes { bytes in
            conflux_curl_set_body(handle, bytes.baseAddress, bytes.count)
            return conflux_curl_perform(handle, multi, calls?.flag)
        }
        return try reply(code, from: member)
    }

    private func reply(
        _ code: CURLcode, from member: String
    ) throws(EtcdFault) -> EtcdReply {
        // If an open connection ends without an answer, libcurl silently sends the request again over another
        // one. So whatever the outcome of the second request, the first one may have been received.
        let stood = connected.contains(member)
        guard code == CURLE_OK else {
            var failure = EtcdFault(
                code, words: sink.words(of: code), isTooLarge: sink.isTooLarge,
                isConnected: conflux_curl_double(handle, CURLINFO_PRETRANSFER_TIME) > 0)
            failure.mayHaveHappened = failure.mayHaveHappened || stood
            renew()
            throw failure
        }
        guard conflux_curl_long(handle, CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_2_0 else {
            // The connection had ended, and the new one was asked for an upgrade: etcd ignores such a
            // request.
            renew()
            throw EtcdFault(
                mayHaveHappened: stood,
                words: stood
                    ? "the connection had ended" : "it does not speak HTTP/2, as etcd does")
        }
        guard let status = sink.status else {
            throw EtcdFault(
                mayHaveHappened: true,
                words: "it answers with HTTP's status "
                    + "\(conflux_curl_long(handle, CURLINFO_RESPONSE_CODE)), and not as etcd does")
        }
        connected.insert(member)
        let body = status == 0 ? GRPCFrame.decode(sink.body) : []
        guard let body else {
            throw EtcdFault(mayHaveHappened: true, words: "its answer was cut off")
        }
        return EtcdReply(status: status, message: sink.message, body: body)
    }
}

extension EtcdFault {
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
        mayHaveHappened = isConnected && !unsent.contains(code) && !isDenied
        self.isTooLarge = isTooLarge
        self.words =
            isForeign ? "it does not speak etcd's protocol, or has ended (\(words))" : words
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
        let value = parts[1].trimmingCharacters(in: .whitespacesAndNewlines)
        switch parts[0].lowercased() {
        case "grpc-status": status = Int(value)
        case "grpc-message": message = (value.removingPercentEncoding ?? value).printable
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

extension String {
    /// The first 256 characters, without terminal control characters.
    fileprivate var printable: String {
        let shown = unicodeScalars.filter { $0.properties.generalCategory != .control }
        return String(String.UnicodeScalarView(shown.prefix(256)))
    }
}
