import CCurl
import ConfluxVocabulary

/// Why a request had no answer of etcd's.
struct TransferFailure: Error {
    /// Whether the member may have got the request.
    var mayBeSent: Bool
    /// Whether the keys of the two sides, or what vouches for them, are in the way.
    var isDenied = false
    /// Whether the answer had more bytes than are taken.
    var isTooLarge = false
    /// What happened, for people.
    var message: String
}

/// What a member answered.
struct EtcdReply {
    /// The status of gRPC; 0 is success.
    var status: Int
    var message: String
    var body: Bytes

    /// Whether only those are served that it knows.
    var wantsUser: Bool { status == 3 && message.contains("user name is empty") }
}

/// One request at a time to members of etcd: gRPC over HTTP/2, by libcurl. It keeps connections open.
///
/// Confined to one thread at a time.
final class EtcdTransfer {
    /// The most bytes of an answer. *At the bound* the transfer ends.
    static let answerBytesMax = 64 << 20

    private var handle: UnsafeMutableRawPointer
    /// Has the connections.
    private var multi: UnsafeMutableRawPointer
    private let sink = TransferSink()
    private let security: EtcdSecurity?
    private var isSecure: Bool { security != nil }
    /// The members that answered last over a connection that is likely to stand.
    private var connected: Set<String> = []
    /// libcurl 7.87 and 7.88 fail when a request that names HTTP/2 as known meets a connection that has it
    /// already. One that asks for an upgrade takes that connection as it is.
    private let asksForUpgrade = (0x07_57_00..<0x08_00_00).contains(conflux_curl_version())

    /// - Throws: Where a file for TLS can't be used, or the system has no room.
    init(_ security: EtcdSecurity?) throws(TransferFailure) {
        guard Self.isReady, let (handle, multi) = Self.makeHandles() else {
            throw TransferFailure(mayBeSent: false, message: "libcurl could not start")
        }
        self.handle = handle
        self.multi = multi
        self.security = security
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

    /// Behind a failure no connection is gone on with: libcurl would take one that stands, and may not be able to use
    /// it.
    private func renew() {
        connected = []
        // Without room for another one, the former has to do.
        guard let next = Self.makeHandles() else { return }
        conflux_curl_end(handle, multi)
        (handle, multi) = next
        prepare()
    }

    deinit {
        conflux_curl_end(handle, multi)
    }

    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Sets what every request to etcd has in common.
    static func prepare(_ handle: UnsafeMutableRawPointer, _ security: EtcdSecurity?) {
        conflux_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        conflux_curl_set_long(handle, CURLOPT_TCP_KEEPALIVE, 1)
        // A name that nobody resolves is not waited for behind the deadline.
        conflux_curl_set_quick_exit(handle)
        // No proxy stands before a log, whatever the environment says.
        conflux_curl_set_text(handle, CURLOPT_NOPROXY, "*")
        guard let security else { return }
        if let file = security.authorityFile {
            conflux_curl_set_text(handle, CURLOPT_CAINFO, file)
            // Else whom the system trusts would be trusted as well.
            conflux_curl_set_pointer(handle, CURLOPT_CAPATH, nil)
        }
        // Nobody is asked for the password of a key that is encrypted.
        conflux_curl_set_text(handle, CURLOPT_KEYPASSWD, "")
        if let file = security.certificateFile {
            conflux_curl_set_text(handle, CURLOPT_SSLCERT, file)
        }
        if let file = security.keyFile { conflux_curl_set_text(handle, CURLOPT_SSLKEY, file) }
    }

    /// Asks a member.
    ///
    /// - Parameters:
    ///   - method: As `/etcdserverpb.KV/Txn`.
    ///   - member: `host:port`.
    ///   - message: The message of Protocol Buffers.
    ///   - token: What a user is known by; nil for nobody.
    ///   - limit: How long it may take.
    /// - Returns: What the member answers.
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
            return conflux_curl_perform(handle, multi)
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
        // libcurl sends a request again, over another connection, where one that stood ends without an answer. It
        // doesn't say so: whatever came of the second one, the first one may have been heard.
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
            // Where the connection had ended, the new one is asked for an upgrade: etcd does nothing then.
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
        // A server that wants a certificate says so after the handshake, as one of the alerts of TLS.
        let isAlert = words.contains("alert") && words.contains("certificate")
        let isForeign = [CURLE_HTTP2, CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL]
            .contains(code)
        isDenied = denying.contains(code) || isAlert
        mayBeSent = isConnected && !unsent.contains(code) && !isDenied
        self.isTooLarge = isTooLarge
        message = isForeign ? "it does not speak etcd's protocol, or has ended (\(words))" : words
    }
}

/// What a transfer receives.
final class TransferSink {
    private(set) var body: [UInt8] = []
    /// The status of gRPC; nil until it came.
    private(set) var status: Int?
    private(set) var message = ""
    private(set) var isTooLarge = false
    /// Where libcurl writes what went wrong.
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
        let words = String(cString: error)
        return words.isEmpty ? String(cString: curl_easy_strerror(code)) : words
    }

    /// Takes as many bytes out as were decoded.
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
        sink.takeLine(String(decoding: raw, as: UTF8.self))
        return size * count
    }
}

extension Substring {
    /// Without the white space around it.
    fileprivate var trimmed: String {
        var text = drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}

extension String {
    /// The first 256 characters but for those that control a terminal.
    fileprivate var printable: String {
        let shown = unicodeScalars.filter { $0.properties.generalCategory != .control }
        return String(String.UnicodeScalarView(shown.prefix(256)))
    }

    /// As gRPC encodes messages: `%` and two hexadecimal digits for a byte.
    fileprivate var percentDecoded: String {
        var bytes: [UInt8] = []
        var rest = Array(utf8)[...]
        while let byte = rest.popFirst() {
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            if byte == UInt8(ascii: "%"), digits.utf8.count == 2,
                let decoded = UInt8(digits, radix: 16)
            {
                bytes.append(decoded)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
