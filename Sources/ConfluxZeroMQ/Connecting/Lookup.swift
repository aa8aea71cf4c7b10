import CSockets
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Where an endpoint is: the addresses of its host. What takes long is done on another thread, one lookup of a
/// socket at a time.
final class Lookup: Sendable {
    private let result = Mutex<Result<[conflux_address], Failure>?>(nil)

    /// Why there is no address.
    struct Failure: Error {
        let failure: ConnectionFailure
    }

    /// How many addresses of one host are tried.
    static let addressesMax = 8

    /// Begins to look.
    ///
    /// - Parameters:
    ///   - endpoint: What to look for.
    ///   - waker: Wakes who waits for it.
    init(_ endpoint: Endpoint, waker: Waker?) {
        switch endpoint.transport {
        case .ipc(let path):
            var address = conflux_address()
            let isFit = conflux_local_address(path, &address) == 0
            finish(
                isFit
                    ? .success([address])
                    : .failure(
                        Failure(failure: .unreachable(ZeroMQError.systemWords(ENAMETOOLONG)))))
        case .tcp(let host, let port):
            // Numbers need no looking up, and most addresses are numbers.
            let found = Self.look(host, port, isNumeric: true)
            if case .success = found {
                finish(found)
                return
            }
            // A thread of its own: those of the system's queues may all wait for this connection.
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

    /// What was found; nil before that.
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
                Failure(failure: .unresolvable(String(cString: gai_strerror(number)))))
        }
        return .success(Array(addresses.prefix(Int(count))))
    }
}
