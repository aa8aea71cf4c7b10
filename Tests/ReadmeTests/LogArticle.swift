import ConfluxLog

/// Is only compiled: it names folders that are not there.
func copy() throws {
    let file = try SQLiteLogFile(directory: "/var/lib/conflux")
    print("entries \(file.floor) to \(file.last) of log \(file.id)")
    try file.copy(to: "/backups/today")
    file.close()
}
