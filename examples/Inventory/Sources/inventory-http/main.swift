import ConfluxNode
import Foundation
import InventoryModel

let environment = ProcessInfo.processInfo.environment
let address = environment["CONFLUX_CONNECT"] ?? "tcp://127.0.0.1:7400"
let port = environment["PORT"].flatMap(UInt16.init) ?? 8080

do {
    let scope = Scope()
    let node = try await Node.connect(to: address, scope: scope)
    // Global actions of these states reach the stores of every process.
    try await node.bridge(ModelState<Stock>.self)
    try await node.bridge(ModelState<Orders>.self)
    guard let server = HTTPServer(port: port, FrontEnd(scope)) else {
        FileHandle.standardError.write(
            Data("inventory-http: nobody can listen at port \(port); set PORT\n".utf8))
        exit(1)
    }
    print("serves http://127.0.0.1:\(port)")
    while true { try await Task.sleep(for: .seconds(3_600)) }
    withExtendedLifetime((node, server)) {}
} catch {
    FileHandle.standardError.write(Data("inventory-http: \(error)\n".utf8))
    exit(1)
}
