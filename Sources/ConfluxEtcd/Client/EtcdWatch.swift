import CCurl
import ConfluxThreads
import Foundation
import Synchronization

/// Watches a key, on a thread of its own. Its calls are only hints: the receiver looks by itself.
// Sendable: mutable state is guarded by a mutex, or confined to the thread.
final class EtcdWatch: @unchecked Sendable {
    /// How long one stream lasts, so that a member that hangs is noticed.
    private static let streamMax = Duration.seconds(60)
    /// The pause after a stream has failed.
    private static let pause = Duration.seconds(1)
    /// How often to call the function while a review is due.
    private static let reviewPause = Duration.seconds(2)

    // Sendable: the mutex guards it. Of the stream's functions, only the one that wakes it is called on other
    // threads.
    private struct State: @unchecked Sendable {
        var isStopped = false
        var isReviewDue = false
        /// The stream that is open; the thread waits on it.
        var multi: UnsafeMutableRawPointer?
    }

    private let settings: EtcdLogSettings
    private let key: String
    private let tell: @Sendable () -> Void
    private let state = Mutex(State())
    private let stopped = Latch()

    /// Starts the watch.
    init(_ settings: EtcdLogSettings, key: String, _ tell: @escaping @Sendable () -> Void) {
        self.settings = settings
        self.key = key
        self.tell = tell
        let thread = Thread { [self] in run() }
        thread.name = "conflux-watch"
        thread.stackSize = 1 << 20
        thread.start()
    }

    /// Whether to call the function every other second, since something may have changed that no key shows.
    var isReviewDue: Bool {
        get { state.withLock { $0.isReviewDue } }
        set {
            state.withLock { state in
                guard state.isReviewDue != newValue else { return }
                state.isReviewDue = newValue
                if let multi = state.multi { curl_multi_wakeup(multi) }
            }
        }
    }

    /// Stops the watch. The thread ends by itself, within the time limit of one call.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            if let multi = state.multi { curl_multi_wakeup(multi) }
        }
        stopped.open()
    }

    // MARK: The watch's thread

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func run() {
        // Without a client there is no watch. The log's own calls report the reason.
        guard let client = try? EtcdClient(settings) else { return }
        while !isStopped {
            let isWell = (try? watch(client)) ?? false
            guard !isStopped else { return }
            if !isWell { stopped.wait(for: Self.pause) }
        }
    }

    /// - Returns: Whether the stream lasted as long as it may.
    /// - Throws: If no member answers.
    private func watch(_ client: EtcdClient) throws(EtcdFailure) -> Bool {
        let answer = try client.transact(EtcdTransaction(success: [.read(.key(key))]))
        var writer = ProtobufWriter()
        writer.put(1) { create in
            create.put(key, as: 1)
            create.put(answer.revision + 1, as: 3)
        }
        // Changes may have happened before the watch began.
        tell()
        let stream = EtcdStream(
            settings, member: client.member, token: client.token, request: writer.bytes,
            limit: Self.streamMax)
        guard let stream else { return false }
        let begun = ContinuousClock.now
        state.withLock { $0.multi = stream.multi }
        defer { state.withLock { $0.multi = nil } }
        while !isStopped {
            let isDue = isReviewDue
            let goesOn = stream.goOn(within: isDue ? Self.reviewPause : Self.streamMax)
            if stream.takeEvents() || isDue { tell() }
            guard !stream.isCanceled else { return false }
            guard goesOn else { break }
        }
        return ContinuousClock.now - begun >= Self.streamMax
    }
}

/// A gRPC call whose request stays open, so that etcd continues to answer.
///
/// Confined to one thread, except that others may wake it.
private final class EtcdStream {
    let multi: UnsafeMutableRawPointer
    private let handle: UnsafeMutableRawPointer
    private let headers: UnsafeMutablePointer<curl_slist>?
    private let sink = TransferSink()
    private let source: StreamSource
    /// Whether etcd has cancelled the watch: nothing more will come, even if the stream stays open.
    private(set) var isCanceled = false
    /// Limits for the next waits, in milliseconds. libcurl 7.88 may hold back a part of what it has read
    /// until it is called again (see `conflux_curl_perform`).
    private var settling = EtcdStream.settlingPauses[...]
    private static let settlingPauses: [Int32] = [1, 4, 16, 64]

    init?(
        _ settings: EtcdLogSettings, member: String, token: String?, request: [UInt8],
        limit: Duration
    ) {
        guard let handles = EtcdTransfer.makeHandles() else { return nil }
        (handle, multi) = handles
        source = StreamSource(GRPCFrame.encode(request))
        let security = settings.address.isSecure ? settings.security : nil
        EtcdTransfer.prepare(handle, sink, security)
        headers = EtcdTransfer.address(
            handle,
            "\(security == nil ? "http" : "https")://\(member)\(EtcdMethod.watch.rawValue)", token,
            within: limit, connecting: settings.answerMax / 2)
        conflux_curl_set_long(handle, CURLOPT_POST, 1)
        conflux_curl_set_function(handle, CURLOPT_READFUNCTION, StreamSource.give)
        conflux_curl_set_pointer(
            handle, CURLOPT_READDATA, Unmanaged.passUnretained(source).toOpaque())
        curl_multi_add_handle(multi, handle)
    }

    deinit {
        conflux_curl_end(handle, multi)
        curl_slist_free_all(headers)
    }

    /// Waits until data arrives, the time is over, or it is woken.
    ///
    /// - Returns: Whether the stream is still open.
    func goOn(within limit: Duration) -> Bool {
        var code = CURLE_OK
        let longest = Int32(limit / .milliseconds(1))
        let pause = min(longest, settling.popFirst() ?? longest)
        return conflux_curl_go_on(multi, pause, &code) == 1
    }

    /// - Returns: Whether there was an event, or a sign that events may have been missed.
    func takeEvents() -> Bool {
        var hasEvents = false
        while let message = GRPCFrame.decode(sink.body) {
            // Field 11 has events; field 4 says that etcd has ended the watch.
            if let fields = try? ProtobufFields(message) {
                isCanceled = isCanceled || fields.has(4)
                hasEvents = hasEvents || fields.has(11) || fields.has(4)
            }
            sink.drop(GRPCFrame.prefixBytes + message.count)
        }
        if hasEvents { settling = Self.settlingPauses[...] }
        return hasEvents
    }
}

/// The body of a stream: one request, and then nothing until the stream ends.
private final class StreamSource {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    static let give: conflux_curl_data = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let source = Unmanaged<StreamSource>.fromOpaque(context).takeUnretainedValue()
        let part = source.rest.prefix(size * count)
        guard !part.isEmpty else { return Int(CURL_READFUNC_PAUSE) }
        UnsafeMutableRawBufferPointer(start: bytes, count: part.count).copyBytes(from: part)
        source.rest = source.rest.dropFirst(part.count)
        return part.count
    }
}
