/// Stands in for Serve.swift.txt until the library is there.
func serve(mode: String) async throws {
    throw BenchmarkError("there is no server of ours yet: use --server")
}
