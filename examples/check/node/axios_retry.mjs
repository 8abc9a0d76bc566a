// axios with axios-retry as heed check meets it.
//
//	heed check --lines -- node axios_retry.mjs best
import axios from 'axios';
import axiosRetry from 'axios-retry';
import { best, serve, version } from './lines.mjs';

const client = axios.create(best ? {
  timeout: 3000,
  transitional: { clarifyTimeoutError: true }, // a timeout is then an error of the network
} : {});
const again = error => axiosRetry.isIdempotentRequestError(error) ||
  [408, 425].includes(error.response?.status) && !['post', 'patch'].includes(error.config.method);
axiosRetry(client, best ? {
  retries: 5,
  retryDelay: axiosRetry.exponentialDelay, // honours Retry-After
  retryCondition: again,
  shouldResetTimeout: true,
} : {});

serve('axios-retry', version('axios-retry'), best ? ['retry', 'timeout=3s'] : ['retry'], async task => {
  const { method, url, header: headers, body: data, signal } = task;
  const answer = await client.request({ method, url, headers, data, signal });
  return answer.status;
});
