from magnetar.admin_client.client import Admin as Admin
from magnetar.admin_client.client import AsyncAdmin as AsyncAdmin

__version__: str
