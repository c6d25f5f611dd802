import type { Metric as LibraryMetric } from 'prom-client'
import type { Metric } from './metrics.ts'

/**
 * The one file that knows prom-client: it writes the text format (Prometheus, "Exposition formats"). It
 * is loaded by the first who asks. What is measured is counted by us, without labels on the way of a
 * delivery, so it gets the finished values.
 */
export const expose = async (
  metrics: readonly Metric[],
): Promise<{ readonly text: string; readonly mediaType: string }> => {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  for (const { name, help, type, samples } of metrics) {
    const values = samples.map((sample) => ({ ...sample, metricName: sample.name }))
    // All that a registry asks of a metric; its own classes count one by one.
    const finished = { name, get: async () => ({ name, help, type, values, aggregator: 'sum' }) }
    registry.registerMetric(finished as unknown as LibraryMetric)
  }
  return { text: await registry.metrics(), mediaType: registry.contentType }
}
