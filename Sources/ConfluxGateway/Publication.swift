import ConfluxArguments
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import ConfluxZeroMQ

/// What is published at one address: a value of `--publish`.
///
/// libzmq applies subscriptions itself, so whoever may subscribe at an address may read everything that is published
/// there. A gateway whose subscribers have different rights has an address for each part of its stores.
struct Publication: Sendable, CustomStringConvertible {
    /// Which stores; nil for all of them.
    let pattern: StorePattern?
    /// Where.
    let endpoint: Endpoint

    /// Whether a store is published there.
    func covers(_ store: StoreName) -> Bool { pattern?.covers(store) ?? true }

    /// The value as it can be given.
    var description: String { "\(pattern.map { "\($0)=" } ?? "")\(endpoint)" }

    /// What the line that says ready has of the addresses where stores are published.
    ///
    /// - Parameter places: The publications, and the addresses at which they are bound.
    /// - Returns: nil without any. The address if all stores are published at one; otherwise each address with its
    ///   pattern, in the order in which they were given.
    static func field(_ places: [(publication: Publication, address: String)]) -> JSONValue? {
        if places.count == 1, places[0].publication.pattern == nil {
            return .string(places[0].address)
        }
        guard !places.isEmpty else { return nil }
        return places.map { publication, address in
            JSONObject([
                "address": address, "stores": "\(publication.pattern ?? .all)",
            ])
        }.json
    }
}

extension ValueParser where Value == Endpoint {
    /// An address to bind.
    static var endpoint: ValueParser<Endpoint> {
        ValueParser("ADDRESS") { (text: String) throws(InvalidValue) in
            do throws(ZeroMQError) {
                return try Endpoint(text)
            } catch {
                let message = error.message
                throw InvalidValue(message.hasSuffix(".") ? String(message.dropLast()) : message)
            }
        }
    }
}

extension ValueParser where Value == Publication {
    /// An address, or a pattern, an equals sign and an address.
    static var publication: ValueParser<Publication> {
        ValueParser("[PATTERN=]ADDRESS") { (text: String) throws(InvalidValue) in
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            // The path of a Unix socket may have an equals sign.
            guard parts.count == 2, !parts[0].contains("://") else {
                return Publication(
                    pattern: nil, endpoint: try ValueParser<Endpoint>.endpoint.parse(text))
            }
            let pattern: StorePattern
            do throws(InvalidText) {
                pattern = try StorePattern(reading: parts[0])
            } catch {
                throw InvalidValue(
                    "\(error.message); for several patterns, give the option several times")
            }
            return Publication(
                pattern: pattern,
                endpoint: try ValueParser<Endpoint>.endpoint.parse(String(parts[1])))
        }
    }
}
