import type { Broker, Machine } from '../../shared/api/api.ts'
import { type Markup, markup, shownLine } from './markup.ts'
import type { PageRequest, View } from './view.ts'

/** The machines that share the queue, and the broker between them. */
export const machinesView: View = {
  path: '/ui/machines',
  show: async ({ status: { broker, machines = [] }, times }) =>
    Promise.resolve({
      title: 'Machines',
      content: markup`
        <div class="view-head"><h1>Machines</h1></div>
        ${
          broker
            ? markup`<div class="stack">${renderBroker(broker)}${renderMachines(machines, times)}</div>`
            : markup`<p class="empty">This machine does everything itself. How several share the work: <code>doorward help several-machines</code></p>`
        }`,
    }),
}

const renderBroker = (broker: Broker): Markup => {
  const { connected, problem, notOffered, server, version, waiting, redelivered } = broker
  return markup`
    <section class="card" aria-label="Broker">
      <div class="row"><h2>Broker</h2><span class="state" data-state="${connected ? 'ok' : 'failed'}">${connected ? 'connected' : 'not connected'}</span></div>
      ${[problem, notOffered].map((words) => markup`${words !== undefined && markup`<p>${shownLine(words)}</p>`}`)}
      <dl class="facts">
        ${server !== undefined && markup`<div><dt>Server</dt><dd>${shownLine(server)}${version !== undefined && markup` <span class="soft">NATS ${shownLine(version)}</span>`}</dd></div>`}
        ${waiting !== undefined && markup`<div><dt>Events that no worker has taken</dt><dd>${waiting}</dd></div>`}
        <div><dt>Runs given to another worker</dt><dd>${redelivered}</dd></div>
      </dl>
    </section>`
}

const renderMachines = (machines: readonly Machine[], times: PageRequest['times']): Markup =>
  machines.length === 0
    ? markup`<p class="empty">No machine has reported itself yet.</p>`
    : markup`
  <div class="table"><table>
    <thead><tr><th scope="col">Machine</th><th scope="col">Role</th><th scope="col">Agents</th><th scope="col">Version</th><th scope="col">Clock</th><th scope="col">Seen</th></tr></thead>
    <tbody>${machines.map((machine) => renderMachine(machine, times))}</tbody>
  </table></div>`

const renderMachine = (
  { name, role, version, seenAt, clockMs = 0, agents }: Machine,
  times: PageRequest['times'],
): Markup => markup`
  <tr>
    <th scope="row">${shownLine(name)}</th>
    <td>${role}</td>
    <td>${
      agents.length === 0
        ? 'none'
        : agents.map(
            (agent, index) =>
              markup`${index > 0 && markup`<br>`}${shownLine(agent.name)} <span class="soft">${agent.running} of ${agent.running + agent.free} at work</span>`,
          )
    }</td>
    <td>${shownLine(version)}</td>
    <td>${Math.abs(clockMs) < 1000 ? 'right' : `${Math.round(Math.abs(clockMs) / 1000)} s ${clockMs > 0 ? 'ahead' : 'behind'}`}</td>
    <td class="soft">${times.ago(seenAt)}</td>
  </tr>`
