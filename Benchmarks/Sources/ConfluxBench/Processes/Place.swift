import ConfluxNode
import ConfluxSequencer
import ConfluxZeroMQ

/// The address to which a process connects, and the keys that it uses.
struct Place: Codable, Sendable {
    var address: String
    /// The secret half of the process's key, and the sequencer's public key, if connections are
    /// encrypted.
    var keys: Keys?

    struct Keys: Codable, Sendable {
        var secret: String
        var sequencer: String
    }

    init(_ address: String) { self.address = address }

    /// The settings for a node's connection.
    var nodeSettings: NodeSettings {
        get throws {
            var settings = NodeSettings()
            if let (own, sequencer) = try pair {
                settings.keys = NodeKeys(own: own, sequencer: sequencer)
            }
            return settings
        }
    }

    /// The security of a socket's connection.
    var security: SocketSecurity {
        get throws {
            guard let (own, sequencer) = try pair else { return .none }
            return .client(own, server: sequencer)
        }
    }

    private var pair: (CurveKeyPair, CurvePublicKey)? {
        get throws {
            guard let keys else { return nil }
            guard let own = CurveKeyPair(secretText: keys.secret),
                let sequencer = CurvePublicKey(keys.sequencer)
            else { throw BenchError("a key is none") }
            return (own, sequencer)
        }
    }
}

/// The keys of a sequencer and of its clients.
struct KeyRing: Codable, Sendable {
    /// The secret half of the sequencer's key.
    let sequencer: String
    /// The text of the file of authorised keys.
    let authorized: String
    private let secrets: [String: String]
    private let publicKey: String

    /// Makes keys.
    ///
    /// - Parameter rights: The rights of each key, by its name.
    init(_ rights: [String: String]) {
        let own = CurveKeyPair.random()
        sequencer = own.secretText
        publicKey = own.description
        var secrets: [String: String] = [:]
        var text = ""
        for (name, rights) in rights {
            let pair = CurveKeyPair.random()
            secrets[name] = pair.secretText
            text += "\(name) \(pair) \(rights)\n"
        }
        self.secrets = secrets
        authorized = text
    }

    /// The place for a process that has one of the keys.
    func place(_ address: String, as name: String) throws -> Place {
        guard let secret = secrets[name] else { throw BenchError("nobody has the key \(name)") }
        var place = Place(address)
        place.keys = Place.Keys(secret: secret, sequencer: publicKey)
        return place
    }
}
