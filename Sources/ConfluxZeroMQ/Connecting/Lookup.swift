import CSockets
import ConfluxSystem
import ConfluxVocabulary
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Looks up the addresses of an endpoint's host. A name is looked up on another thread, since that may take long. A
/// socket has at most one lookup at a time.
final class Lookup: Sendable {
    private let result = Mutex<Result<[conflux_address], Failure>?>(nil)

    /// Why there is no address.
    struct Failure: Error {
        let failure: ConnectionFailure
    }

    /// The most addresses of one host that are tried.
    static let addressesMax = 8

    /// Begins the lookup.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint to look up.
    ///   - waker: Wakes the thread that waits for the result.
    init(_ endpoint: Endpoint, waker: Waker?) {
        switch endpoint.transport {
        case .ipc(let path):
            var address = conflux_address()
            let isFit = conflux_local_address(path, &address) == 0
            finish(
                isFit
                    ? .success([address])
                    : .failure(
                        Failure(failure: .unreachable(SystemFailure(ENAMETOOLONG).words))))
        case .tcp(let host, let port):
            // Most addresses are numeric, and need no lookup of a name.
            let found = Self.look(host, port, isNumeric: true)
            if case .success = found {
                finish(found)
                return
            }
            // A thread of its own: all threads of the system's queues may be waiting for this
            // connection.
            do throws(ZeroMQError) {
                _ = try NamedThread("conflux-lookup", stackBytes: 1 << 20) { [self] in
                    finish(Self.look(host, port, isNumeric: false))
                    waker?.wake()
                }
            } catch {
                finish(.failure(Failure(failure: .unresolvable(error.message))))
            }
        }
    }

    /// The result; nil before there is one.
    var found: Result<[conflux_address], Failure>? { result.withLock { $0 } }

    private func finish(_ found: Result<[conflux_address], Failure>) {
        result.withLock { $0 = found }
    }

    private static func look(
        _ host: String, _ port: UInt16, isNumeric: Bool
    ) -> Result<[conflux_address], Failure> {
        var addresses = [conflux_address](repeating: conflux_address(), count: addressesMax)
        var number: Int32 = 0
        let count = conflux_resolve(
            host, port, isNumeric ? 1 : 0, &addresses, Int32(addressesMax), &number)
        guard count > 0 else {
            return .failure(
                Failure(failure: .unresolvable(String(shownCString: gai_strerror(number)))))
        }
        return .success(Array(addresses.prefix(Int(count))))
    }
}
