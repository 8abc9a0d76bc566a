// undici's RetryAgent as heed check meets it.
//
//	heed check --lines -- node undici_retry.mjs best
import { Agent, request, RetryAgent } from 'undici';
import { best, serve, version } from './lines.mjs';

const agent = best ? new Agent({ headersTimeout: 3000, bodyTimeout: 3000, connections: 8 }) : new Agent();
const dispatcher = new RetryAgent(agent, best ? {
  maxRetries: 5,
  minTimeout: 300,
  maxTimeout: 60_000, // Retry-After is cut down to it, too
  statusCodes: [408, 425, 429, 500, 502, 503, 504],
  errorCodes: ['ECONNRESET', 'ECONNREFUSED', 'ENOTFOUND', 'ENETDOWN', 'ENETUNREACH', 'EHOSTDOWN', 'UND_ERR_SOCKET',
    'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
} : {});
const claims = best ? ['retry', 'timeout=3s', 'concurrency=8'] : ['retry'];

serve('undici RetryAgent', version('undici'), claims, async task => {
  const { method, url, header: headers, body, signal } = task;
  const answer = await request(url, { dispatcher, method, headers, body, signal });
  await answer.body.text();
  return answer.statusCode;
});
